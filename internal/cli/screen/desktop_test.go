package screen_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/waittest"
)

// The browser gets the address as one argument, whatever is in it, and nobody waits for it.
func TestTheBrowserThatWasChosenIsOpened(t *testing.T) {
	bin := t.TempDir()
	seen := filepath.Join(bin, "seen")
	program := filepath.Join(bin, "my browser")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '<%s>' \"$@\" > '"+seen+".part' && mv '"+seen+".part' '"+seen+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", program)
	const address = "http://127.0.0.1:8080/oauth/authorize?a=1&b=$(touch x);'\""
	if err := screen.Browse(address); err != nil {
		t.Fatal(err)
	}
	if !waittest.Until(func() bool { _, err := os.Stat(seen); return err == nil }) {
		t.Fatal("it was not opened")
	}
	if got, err := os.ReadFile(seen); err != nil || string(got) != "<"+address+">" {
		t.Errorf("it opens %s, %v", got, err)
	}
	t.Setenv("BROWSER", filepath.Join(bin, "none"))
	if err := screen.Browse(address); err == nil {
		t.Error("a browser that there isn't was opened")
	}
	t.Setenv("BROWSER", "")
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("PATH", bin)
	if err := screen.Browse(address); err == nil {
		t.Error("there is neither a desktop nor a program for it")
	}
}

func TestSettingsAreWhereTheSystemHasThem(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_CONFIG_HOME", "/elsewhere")
	if got, err := screen.ConfigFolder(); err != nil || !strings.HasSuffix(got, "/millrace") {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	if got, err := screen.ConfigFolder(); err == nil {
		t.Errorf("nobody's settings are in %q", got)
	}
}

func TestAWaitEndsWhenThePersonLeaves(t *testing.T) {
	t.Parallel()
	if err := screen.Sleep(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	if err := screen.Sleep(t.Context(), -time.Second); err != nil {
		t.Errorf("a time that has passed: %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := screen.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
