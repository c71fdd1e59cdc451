package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// condaOption is the setting that counts in place of conda's.
const condaOption = "--conda-channels"

// words are a list, or a text with commas.
type words []string

func (w *words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*w = readWords(node.Value)
		return nil
	}
	return node.Decode((*[]string)(w))
}

func readWords(text string) words {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// condaFile are the settings of a file, or of the variables.
type condaFile struct {
	Channels        words             `yaml:"channels"`
	DefaultChannels words             `yaml:"default_channels"`
	ChannelAlias    string            `yaml:"channel_alias"`
	CustomChannels  map[string]string `yaml:"custom_channels"`

	from string
}

// condaSettings are all of them together. Lists have what counts most first.
type condaSettings struct {
	channels, defaults []setting
	alias              setting
	custom             map[string]setting
}

// Conda reads where conda takes packages from: the addresses of channels, in the order in
// which they are to be asked, or the names of those for which none is configured. Where no
// channels are named there are none: those that conda uses by itself are not free for
// everybody.
func (m Machine) Conda() (channels []string, err error) {
	s, err := m.condaSettings()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, channel := range s.named() {
		address := s.place(channel)
		name := path.Base(address.value)
		switch {
		case !strings.Contains(address.value, "://"):
		case strings.Contains(address.value, "/t/"):
			err = fmt.Errorf("%s names an address with credentials, which the server takes only from %s", address.from, condaOption)
		default:
			err = checkAddress(address, condaOption)
		}
		if err != nil {
			return nil, err
		}
		if !names[name] {
			channels = append(channels, address.value)
		}
		names[name] = true
	}
	return channels, nil
}

// named are the channels, with those that `defaults` is configured to stand for.
func (s condaSettings) named() (list []setting) {
	for _, channel := range s.channels {
		switch channel.value {
		case "defaults":
			list = append(list, s.defaults...)
		case "nodefaults":
		default:
			list = append(list, channel)
		}
	}
	return list
}

// place is the address of a channel, or its name where none is configured.
func (s condaSettings) place(channel setting) setting {
	if strings.Contains(channel.value, "://") {
		return setting{strings.TrimRight(channel.value, "/"), channel.from}
	}
	base, custom := s.custom[channel.value]
	if !custom {
		base = s.alias
	}
	if base.value == "" {
		return channel
	}
	return setting{strings.TrimRight(base.value, "/") + "/" + channel.value, base.from}
}

func (m Machine) condaSettings() (s condaSettings, err error) {
	files, err := m.condaFiles()
	if err != nil {
		return s, err
	}
	s.custom = map[string]setting{}
	for _, f := range files {
		for _, name := range f.Channels {
			s.channels = append(s.channels, setting{name, f.from})
		}
		for _, name := range f.DefaultChannels {
			s.defaults = append(s.defaults, setting{name, f.from})
		}
		if s.alias.value == "" {
			s.alias = setting{f.ChannelAlias, f.from}
		}
		for name, base := range f.CustomChannels {
			if _, set := s.custom[name]; !set {
				s.custom[name] = setting{base, f.from}
			}
		}
	}
	return s, nil
}

// condaFiles are the settings of all places, those that count most first.
func (m Machine) condaFiles() (list []condaFile, err error) {
	paths, err := m.condaPaths()
	if err != nil {
		return nil, err
	}
	list = append(list, condaFile{
		Channels: readWords(m.env("CONDA_CHANNELS")), DefaultChannels: readWords(m.env("CONDA_DEFAULT_CHANNELS")), ChannelAlias: m.env("CONDA_CHANNEL_ALIAS"),
		from: "the environment (CONDA_CHANNELS)",
	})
	for _, path := range slices.Backward(paths) {
		text, err := read(path)
		if err != nil {
			return nil, err
		}
		f := condaFile{from: path}
		if err := yaml.NewDecoder(strings.NewReader(text)).Decode(&f); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s%s: it is not what conda reads", path, lineOf(err))
		}
		list = append(list, f)
	}
	return list, nil
}

// lineOf is the line that an error is about. The rest of its text may quote the file.
func lineOf(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if failed, ok := errors.AsType[*yaml.TypeError](err); ok && len(failed.Errors) > 0 {
		text = failed.Errors[0]
	}
	line, _, found := strings.Cut(text, ":")
	if !found || !strings.HasPrefix(line, "line ") {
		return ""
	}
	return ", " + line
}

// condaPaths are the files that conda reads, the one that counts least first.
func (m Machine) condaPaths() (list []string, err error) {
	home, config := m.home()
	folders := []string{m.Root + "/etc/conda", m.Root + "/var/lib/conda"}
	if root := m.env("CONDA_ROOT"); root != "" {
		folders = append(folders, root)
	}
	if config != "" {
		folders = append(folders, filepath.Join(config, "conda"))
	}
	if home != "" {
		folders = append(folders, filepath.Join(home, ".conda"), home)
	}
	if prefix := m.env("CONDA_PREFIX"); prefix != "" {
		folders = append(folders, prefix)
	}
	for _, folder := range folders {
		list = append(list, filepath.Join(folder, ".condarc"))
		if folder == home {
			continue
		}
		list = append(list, filepath.Join(folder, "condarc"))
		more, err := os.ReadDir(filepath.Join(folder, "condarc.d"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, e := range more {
			if slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(e.Name())) {
				list = append(list, filepath.Join(folder, "condarc.d", e.Name()))
			}
		}
	}
	if named := m.env("CONDARC"); named != "" {
		list = append(list, named)
	}
	return list, nil
}
