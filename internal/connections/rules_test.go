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
	https := func(change func(*New)) New {
		in := New{Name: "x", Type: HTTPS, Settings: Settings{Host: "h.org"}, Credentials: Credentials{Token: "t"}}
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
		"a question mark":       {s3(func(in *New) { in.Endpoint = "https://s3.example.org?" }), "endpoint"},
		"a number sign":         {s3(func(in *New) { in.Endpoint = "https://s3.example.org#" }), "endpoint"},
		"an endpoint with port": {s3(func(in *New) { in.Endpoint = "HTTPS://S3.example.org:65535/" }), ""},
		"a port too high":       {s3(func(in *New) { in.Endpoint = "https://s3.example.org:65536" }), "endpoint"},
		"an IPv6 endpoint":      {s3(func(in *New) { in.Endpoint = "https://[2001:db8::1]:9000" }), ""},
		"no host at all":        {s3(func(in *New) { in.Endpoint = "https://" }), "endpoint"},
		"another scheme":        {s3(func(in *New) { in.Endpoint = "ftp://s3.example.org" }), "endpoint"},
		"the longest bucket":    {s3(func(in *New) { in.Bucket = strings.Repeat("b", 63) }), ""},
		"a bucket too long":     {s3(func(in *New) { in.Bucket = strings.Repeat("b", 64) }), "bucket"},
		"a bucket too short":    {s3(func(in *New) { in.Bucket = "ab" }), "bucket"},
		"the longest prefix":    {s3(func(in *New) { in.Prefix = strings.Repeat("p", maxKey-1) }), ""},
		"a prefix too long":     {s3(func(in *New) { in.Prefix = strings.Repeat("p", maxKey) }), "prefix"},
		"a broken prefix":       {s3(func(in *New) { in.Prefix = "\xff" }), "prefix"},
		"the longest name":      {s3(func(in *New) { in.Name = strings.Repeat("ä", 100) }), ""},
		"a name too long":       {s3(func(in *New) { in.Name = strings.Repeat("ä", 101) }), "name"},
		"blanks around a name":  {s3(func(in *New) { in.Name = "lab " }), "name"},
		"a key of two lines":    {s3(func(in *New) { in.AccessKey = "a\nb" }), "accessKey"},
		"a secret with a NUL":   {s3(func(in *New) { in.SecretKey = "a\x00" }), "secretKey"},
		"the largest secret":    {s3(func(in *New) { in.SecretKey = strings.Repeat("x", maxSecret) }), ""},
		"a port of nothing":     {https(func(in *New) { in.Host = "h.org:0" }), "host"},
		"a password, no name":   {https(func(in *New) { in.Token, in.Password = "", "p" }), ""},
		"a name, no password":   {https(func(in *New) { in.Username = "u" }), "password"},
		"both":                  {https(func(in *New) { in.Password = "p" }), "password"},
		"a name with a colon":   {https(func(in *New) { in.Token, in.Password, in.Username = "", "p", "a:b" }), "username"},
		"a password of lines":   {https(func(in *New) { in.Token, in.Password, in.Username = "", "p\nq", "u" }), "password"},
		"a header of its own":   {https(func(in *New) { in.Header = "X-Api-Key" }), ""},
		"a header, no token":    {https(func(in *New) { in.Header, in.Token, in.Password = "X-Api-Key", "", "p" }), "token"},
		"a range as header":     {https(func(in *New) { in.Header = "rAnGe" }), "header"},
		"the longest header":    {https(func(in *New) { in.Header = strings.Repeat("x", 64) }), ""},
		"a header too long":     {https(func(in *New) { in.Header = strings.Repeat("x", 65) }), "header"},
		"a bucket for a host":   {https(func(in *New) { in.Bucket = "lab" }), "bucket"},
		"a key for a host":      {https(func(in *New) { in.SSHKey = "k" }), "sshKey"},
		"a Git host, no name":   {New{Name: "x", Type: Git, Settings: Settings{Host: "h.org"}, Credentials: Credentials{Password: "p"}}, "username"},
		"a Git host, no key":    {New{Name: "x", Type: Git, Settings: Settings{Host: "h.org"}}, "token"},
		"a key for a Git host":  {New{Name: "x", Type: Git, Settings: Settings{Host: "h.org:22"}, Credentials: Credentials{SSHKey: "k"}}, ""},
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
