package screen

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Browse opens an address in the person's browser: the one BROWSER names, else
// the desktop's.
func Browse(url string) error {
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

// ConfigFolder is where the client keeps what it has to remember.
func ConfigFolder() (string, error) {
	folder, err := os.UserConfigDir() // XDG_CONFIG_HOME, where there is one
	return filepath.Join(folder, "millrace"), err
}
