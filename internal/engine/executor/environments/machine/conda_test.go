package machine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatCondaIsTold(t *testing.T) {
	t.Parallel()
	const alias = "channel_alias: https://conda.example/\n"
	placed := func(addresses ...string) []string { return addresses }
	for name, tt := range map[string]struct {
		files, variables map[string]string
		want             []string
	}{
		"nothing":     {nil, nil, nil},
		"empty files": {map[string]string{"home/.condarc": "", "etc/conda/.condarc": "# nothing\n"}, nil, nil},
		"a variable":  {nil, map[string]string{"CONDA_CHANNELS": "https://a.example/own/,https://b.example/other"}, placed("https://a.example/own", "https://b.example/other")},
		"names": {
			map[string]string{"home/.condarc": alias + "channels:\n  - conda-forge\n  - bioconda\n  - nodefaults\n"},
			nil,
			placed("https://conda.example/conda-forge", "https://conda.example/bioconda"),
		},
		"a single name":      {map[string]string{"home/.condarc": alias + "channels: conda-forge\n"}, nil, placed("https://conda.example/conda-forge")},
		"an alias elsewhere": {map[string]string{"etc/conda/condarc": alias, "home/.condarc": "channels: [conda-forge]\n"}, nil, placed("https://conda.example/conda-forge")},
		"an alias by a variable": {
			map[string]string{"home/.condarc": alias + "channels: [conda-forge]\n"}, map[string]string{"CONDA_CHANNEL_ALIAS": "https://mirror.example"}, placed("https://mirror.example/conda-forge"),
		},
		"a channel of its own": {
			map[string]string{"home/.condarc": alias + "custom_channels:\n  lab: https://lab.example/conda\nchannels: [lab, conda-forge]\n"},
			nil,
			placed("https://lab.example/conda/lab", "https://conda.example/conda-forge"),
		},
		"what defaults stands for": {
			map[string]string{"home/.condarc": alias + "default_channels:\n  - https://main.example/pkgs/main\n  - r\nchannels: [defaults]\n"},
			nil,
			placed("https://main.example/pkgs/main", "https://conda.example/r"),
		},
		"no addresses": {
			map[string]string{"home/.condarc": "channels: [conda-forge, defaults, 'https://a.example/own', nodefaults]\n"},
			nil,
			placed("conda-forge", "https://a.example/own"),
		},
		"all places": {
			map[string]string{
				"etc/conda/.condarc": alias + "channels: [c]\n", "etc/conda/condarc.d/a.yml": "channels: [b]\n", "etc/conda/condarc.d/b.txt": "channels: [x]\n",
				"config/conda/condarc": "channels: [a, c]\n", "home/.conda/.condarc": "channels: [h]\n", "home/.condarc": "channels: [g]\n", "home/condarc": "channels: [x]\n",
				"prefix/.condarc": "channels: [p]\n", "named": "channels: [n]\n", "root/.condarc": "channels: [r]\n",
			},
			map[string]string{"XDG_CONFIG_HOME": "ROOT/config", "CONDA_PREFIX": "ROOT/prefix", "CONDARC": "ROOT/named", "CONDA_ROOT": "ROOT/root", "CONDA_CHANNELS": "v"},
			placed("https://conda.example/v", "https://conda.example/n", "https://conda.example/p", "https://conda.example/g", "https://conda.example/h", "https://conda.example/a",
				"https://conda.example/c", "https://conda.example/r", "https://conda.example/b"),
		},
		"one of a name": {nil, map[string]string{"CONDA_CHANNELS": "https://a.example/own,https://b.example/own"}, placed("https://a.example/own")},
	} {
		got, err := with(t, tt.files, tt.variables).Conda()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestWhatCondaCannotBeTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, says string
	}{
		"no YAML":       {"channels:\n  - [secret\n", ".condarc, line "},
		"another shape": {"channels:\n  secret: 1\n", ".condarc, line 2"},
		"no mapping":    {"- secret\n", ".condarc, line 1"},
		"a path":        {"channels: ['file:///secret']\n", "not an address"},
		"a password":    {"channels: ['https://user:secret@conda.example/own']\n", "credentials, which the server takes only from --conda-channels"},
		"a token":       {"channels: ['https://conda.example/t/secret/own']\n", "credentials"},
		"an alias":      {"channels: [own]\nchannel_alias: https://user:secret@conda.example\n", "credentials"},
		"bombs":         {"a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nchannels: [*c]\n", ".condarc"},
		"too much":      {strings.Repeat("# secret\n", 1<<17), "more than 1 MB"},
	} {
		m := with(t, map[string]string{"home/.condarc": tt.text}, nil)
		c, err := m.Conda()
		if err == nil || !strings.Contains(err.Error(), m.Root+"/home/.condarc") || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") || len(c) > 0 {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}
