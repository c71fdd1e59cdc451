package settingsfile

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// maxSecret is the longest secret that is read from a file.
const maxSecret = 64 << 10

// fromFile is what the name of a setting ends with whose file has the value of another one.
const fromFile = "-file"

// ReadSecrets gives each setting NAME the content of the file that NAME-file names, if
// there are both.
func ReadSecrets(parsed *kong.Context) error {
	for _, flag := range parsed.Selected().Flags {
		of := secretOf(parsed, flag)
		path, _ := parsed.FlagValue(flag).(string)
		if of == nil || path == "" {
			continue
		}
		if isSet(parsed, of) {
			return fmt.Errorf("--%s and --%s are both set: leave one of them out", of.Name, flag.Name)
		}
		text, err := readSecret(path)
		if err != nil {
			return fmt.Errorf("--%s: %w", flag.Name, err)
		}
		value := reflect.New(of.Target.Type()).Elem()
		if err := of.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text}), value); err != nil {
			return fmt.Errorf("--%s: the content of the file is not a value of --%s", flag.Name, of.Name)
		}
		of.Target.Set(value)
	}
	return nil
}

// secretOf is the setting whose value the file of this one has, or nil.
func secretOf(parsed *kong.Context, flag *kong.Flag) *kong.Flag {
	flags := parsed.Selected().Flags
	name, is := strings.CutSuffix(flag.Name, fromFile)
	if !is || !slices.ContainsFunc(flags, func(f *kong.Flag) bool { return f.Name == "config" }) {
		return nil // another one, or one of the client
	}
	if i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name }); i >= 0 {
		return flags[i]
	}
	return nil
}

// isSet reports whether somebody gave a setting, in whatever way.
func isSet(parsed *kong.Context, flag *kong.Flag) bool {
	return slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag == flag }) ||
		slices.ContainsFunc(flag.Envs, func(name string) bool { return os.Getenv(name) != "" })
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case len(raw) > maxSecret:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxSecret)
	case text == "":
		return "", fmt.Errorf("%s is empty", path)
	case strings.ContainsAny(text, "\x00\n\r"):
		return "", fmt.Errorf("%s must have one line without NUL characters", path)
	}
	return text, nil
}

// Exposed names the settings with secrets that are on the command line, where everybody on
// the machine can read them.
func Exposed(parsed *kong.Context) (names []string) {
	for _, flag := range parsed.Selected().Flags {
		of := secretOf(parsed, flag)
		if of == nil || !slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag == of && !p.Resolved }) {
			continue
		}
		value := fmt.Sprint(parsed.FlagValue(of))
		if !strings.Contains(value, "://") || hasPassword(value) {
			names = append(names, "--"+of.Name)
		}
	}
	return names
}

// hasPassword reports whether an address has one.
func hasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true // nobody can tell
	}
	_, is := u.User.Password()
	return is || u.Query().Has("secret-key") || u.Query().Has("password")
}
