package connections

import (
	"strings"
	"testing"
)

func TestWhatIsWrongWithAConnectionIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	s3 := func(change func(*New)) New {
		in := New{Name: "lab", Type: S3, Settings: Settings{Bucket: "lab"}, Credentials: Credentials{AccessKey: "a", SecretKey: "s"}}
		change(&in)
		return in
	}
	for name, tt := range map[string]struct {
		in    New
		wrong string // paths
	}{
		"a bucket":              {s3(func(*New) {}), ""},
		"a public bucket":       {s3(func(in *New) { in.Credentials = Credentials{} }), ""},
		"a host":                {New{Name: "x", Type: HTTPS, Settings: Settings{Host: "Data.Example.org:8443"}, Credentials: Credentials{Token: "t"}}, ""},
		"a Git host":            {New{Name: "x", Type: Git, Settings: Settings{Host: "github.com"}, Credentials: Credentials{Token: "t"}}, ""},
		"no name":               {s3(func(in *New) { in.Name = " " }), "name"},
		"two lines":             {s3(func(in *New) { in.Name = "a\nb" }), "name"},
		"no such type":          {New{Name: "x", Type: "ftp"}, "type"},
		"no TLS":                {s3(func(in *New) { in.Endpoint = "http://s3.example.org" }), "endpoint"},
		"a path in an endpoint": {s3(func(in *New) { in.Endpoint = "https://s3.example.org/x" }), "endpoint"},
		"a user in an endpoint": {s3(func(in *New) { in.Endpoint = "https://u:p@s3.example.org" }), "endpoint"},
		"a bucket with a slash": {s3(func(in *New) { in.Bucket = "a/../b" }), "bucket"},
		"half a key":            {s3(func(in *New) { in.SecretKey = "" }), "secretKey"},
		"a host for a bucket":   {s3(func(in *New) { in.Host = "h" }), "host"},
		"a header that is two":  {New{Name: "x", Type: HTTPS, Settings: Settings{Host: "h.org", Header: "A: b\r\nC"}, Credentials: Credentials{Token: "t"}}, "header"},
		"another Host":          {New{Name: "x", Type: HTTPS, Settings: Settings{Host: "h.org", Header: "Host"}, Credentials: Credentials{Token: "t"}}, "header"},
		"a token of two lines":  {New{Name: "x", Type: HTTPS, Settings: Settings{Host: "h.org"}, Credentials: Credentials{Token: "t\r\nX: y"}}, "token"},
		"an address as host":    {New{Name: "x", Type: HTTPS, Settings: Settings{Host: "https://h.org/x"}, Credentials: Credentials{Token: "t"}}, "host"},
		"nothing to get in by":  {New{Name: "x", Type: HTTPS, Settings: Settings{Host: "h.org"}}, "token"},
		"two ways in":           {New{Name: "x", Type: Git, Settings: Settings{Host: "h.org"}, Credentials: Credentials{Token: "t", SSHKey: "k"}}, "token"},
		"a large secret":        {s3(func(in *New) { in.SecretKey = strings.Repeat("x", maxSecret+1) }), "secretKey"},
		"everything":            {New{Type: S3, Settings: Settings{Endpoint: "x", Region: "?", Prefix: "a\x00"}}, "name endpoint bucket region prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.in.Settings = tt.in.normal(tt.in.Type)
			var paths []string
			for _, d := range (Rules{}).problems(tt.in) {
				paths = append(paths, d.Path)
			}
			if got := strings.Join(paths, " "); got != tt.wrong {
				t.Errorf("%q, want %q", got, tt.wrong)
			}
		})
	}
}

func TestAPrefixIsAFolder(t *testing.T) {
	t.Parallel()
	c := Connection{Name: "lab", Settings: Settings{Prefix: "/reads"}.normal(S3)}
	for key, inside := range map[string]bool{"reads/": true, "reads/a": true, "reads": false, "reads-of-others/a": false, "": false, "a": false} {
		if err := c.Holds(key); (err == nil) != inside {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestAHintSaysLittle(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{"": "", "short": "", "elevenchars": "", "twelve chars": "hars"} {
		if got := hint(Credentials{Token: secret}); got != want {
			t.Errorf("%q: %q", secret, got)
		}
	}
}
