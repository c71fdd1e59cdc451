package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// browse opens an address in the person's browser: the one BROWSER names, else
// the desktop's.
func browse(url string) error {
	program := os.Getenv("BROWSER")
	switch {
	case program != "":
	case runtime.GOOS == "darwin":
		program = "open"
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		program = "xdg-open"
	default:
		return errors.New("there is no desktop here")
	}
	c := exec.Command(program, url) // it may stay open for days
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}
