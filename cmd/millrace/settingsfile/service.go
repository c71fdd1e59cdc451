package settingsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// ServiceFile has the settings of the service that the package installs.
const ServiceFile = "/etc/millrace/millrace.conf"

// Administers reports whether a command looks after an installation that a service serves.
func Administers(parsed *kong.Context) bool {
	switch words := strings.Fields(parsed.Command()); words[0] {
	case "migrate", "backup", "restore":
		return true
	case "admin":
		return words[1] != "init" && words[1] != "ready"
	default:
		return false
	}
}

// Service is the file of the service, if a command shall read it: nobody named another file,
// and nobody named another installation by its data folder or its database.
func Service(parsed *kong.Context, path string) (string, error) {
	if !Administers(parsed) || Value(parsed, "config") != "" {
		return "", nil
	}
	named := map[string]string{}
	for _, flag := range parsed.Selected().Flags {
		if (flag.Name == "data" || flag.Name == "database-url" || flag.Name == "database-url-file") && isSet(parsed, flag) {
			named[flag.Name] = Value(parsed, flag.Name)
		}
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && len(named) > 0:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the settings of the service: %w; run this command as root or as the user of the service, or give the --data of your own installation", err)
	}
	defer f.Close()
	loaded, err := Load(f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for name, value := range named {
		if have := loaded.(file).values[name]; have != value && !(name == "data" && same(have, value)) {
			return "", nil
		}
	}
	return path, nil
}

// same reports whether two paths name one folder.
func same(a, b string) bool {
	one, err := filepath.Abs(a)
	other, err2 := filepath.Abs(b)
	return err == nil && err2 == nil && one == other
}

// Value is the text of a setting of the command that was parsed.
func Value(parsed *kong.Context, name string) string {
	for _, flag := range parsed.Selected().Flags {
		if flag.Name == name {
			return fmt.Sprint(parsed.FlagValue(flag))
		}
	}
	return ""
}
