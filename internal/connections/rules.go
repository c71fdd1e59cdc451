package connections

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Amazon is where a bucket is when nobody says where.
const Amazon = "https://s3.amazonaws.com"

const (
	maxName   = 100
	maxKey    = 1024 // bytes of an S3 key, and so of a prefix
	maxSecret = 16 << 10
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	hostName   = regexp.MustCompile(`^(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(:[0-9]{1,5})?$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

// notACredential are headers by which a request would become another one.
var notACredential = []string{
	"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "range", "if-match", "if-range", "accept-encoding", "proxy-authorization",
}

// normal is how settings are kept.
func (s Settings) normal(t Type) Settings {
	s.HostKey = "" // learnt, never told
	s.Host = strings.ToLower(s.Host)
	if t != S3 {
		return s
	}
	if s.Endpoint == "" {
		s.Endpoint = Amazon
	}
	s.Endpoint = strings.TrimSuffix(s.Endpoint, "/")
	if s.Prefix = strings.TrimLeft(s.Prefix, "/"); s.Prefix != "" && !strings.HasSuffix(s.Prefix, "/") {
		s.Prefix += "/"
	}
	return s
}

// notes gathers what is wrong.
type notes []fault.Detail

func (n *notes) add(path, message string) {
	*n = append(*n, fault.Detail{Path: path, Message: message})
}

// problems are everything that is wrong with a new connection.
func (r Rules) problems(in New) (wrong notes) {
	if name := strings.TrimSpace(in.Name); name == "" || name != in.Name || !plain(in.Name) || utf8.RuneCountInString(in.Name) > maxName {
		wrong.add("name", "needs 1 to 100 characters in one line")
	}
	switch in.Type {
	case S3:
		r.s3(in, &wrong)
	case HTTPS:
		https(in, &wrong)
	case Git:
		git(in, &wrong)
	default:
		wrong.add("type", "is none of s3, https and git")
		return wrong
	}
	in.foreign(&wrong)
	for path, secret := range in.secrets() {
		if len(secret) > maxSecret || !utf8.ValidString(secret) || strings.ContainsRune(secret, 0) {
			wrong.add(path, "holds at most 16 KB of text")
		}
	}
	return wrong
}

func (r Rules) s3(in New, wrong *notes) {
	u, err := url.Parse(in.Endpoint)
	switch {
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || !validHost(strings.ToLower(u.Host)) || !strings.EqualFold(in.Endpoint, u.Scheme+"://"+u.Host):
		wrong.add("endpoint", "is not of the form https://host or https://host:port")
	case u.Scheme == "http" && !r.PlainHTTP:
		wrong.add("endpoint", "must begin with https, because what is sent without it can be read on the way: the server's operator can allow http with --fetch-allow-private")
	}
	if !bucketName.MatchString(in.Bucket) {
		wrong.add("bucket", "is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens")
	}
	if in.Region != "" && !regionName.MatchString(in.Region) {
		wrong.add("region", "is not a region such as eu-central-1")
	}
	if len(in.Prefix) > maxKey || !plain(in.Prefix) {
		wrong.add("prefix", "is no prefix of objects' keys")
	}
	if (in.AccessKey == "") != (in.SecretKey == "") {
		wrong.add("secretKey", "and accessKey go together: give both, or none for a public bucket")
	}
	if !headerText(in.AccessKey) {
		wrong.add("accessKey", "is one line of printable ASCII characters")
	}
}

func https(in New, wrong *notes) {
	checkHost(in.Host, wrong)
	if in.Header != "" {
		switch {
		case !headerName.MatchString(in.Header) || forbiddenHeader(in.Header):
			wrong.add("header", "is not a header that can carry a credential, such as X-Api-Key")
		case in.Token == "":
			wrong.add("token", "is needed: it is what the header carries")
		}
	}
	if in.Token != "" && in.Password != "" {
		wrong.add("password", "and token exclude one another")
	}
	if in.Username != "" && in.Password == "" {
		wrong.add("password", "is needed with a username")
	}
	if in.Token == "" && in.Password == "" {
		wrong.add("token", "is needed, or a username and a password: what is public needs no connection")
	}
	checkLogin(in, wrong)
}

func git(in New, wrong *notes) {
	checkHost(in.Host, wrong)
	given := 0
	for _, secret := range []string{in.Token, in.Password, in.SSHKey} {
		if secret != "" {
			given++
		}
	}
	if given != 1 {
		wrong.add("token", "is needed, or a password, or an sshKey: exactly one of them")
	}
	if in.Password != "" && in.Username == "" {
		wrong.add("username", "is needed with a password")
	}
	checkLogin(in, wrong)
}

// validHost reports whether a text is a host, with a port or without.
func validHost(host string) bool {
	m := hostName.FindStringSubmatch(host)
	if m == nil {
		return false
	}
	port, err := strconv.Atoi(strings.TrimPrefix(m[len(m)-1], ":"))
	return m[len(m)-1] == "" || err == nil && port >= 1 && port <= 65535
}

func checkHost(host string, wrong *notes) {
	if !validHost(host) {
		wrong.add("host", "is a host name such as data.example.org, without https:// and path")
	}
}

// checkLogin refuses what could end a header line.
func checkLogin(in New, wrong *notes) {
	if !headerText(in.Token) {
		wrong.add("token", "is one line of printable ASCII characters")
	}
	if !plain(in.Username) || strings.Contains(in.Username, ":") || len(in.Username) > maxKey {
		wrong.add("username", "is one line without a colon")
	}
	if !plain(in.Password) {
		wrong.add("password", "is one line")
	}
}

// foreign notes the fields that belong to another type.
func (in New) foreign(wrong *notes) {
	known := map[Type]string{
		S3: " endpoint region bucket prefix accessKey secretKey ", HTTPS: " host header token username password ", Git: " host token username password sshKey ",
	}[in.Type]
	for _, f := range []struct{ path, value string }{
		{"endpoint", in.Endpoint},
		{"region", in.Region},
		{"bucket", in.Bucket},
		{"prefix", in.Prefix},
		{"accessKey", in.AccessKey},
		{"secretKey", in.SecretKey},
		{"host", in.Host},
		{"header", in.Header},
		{"token", in.Token},
		{"username", in.Username},
		{"password", in.Password},
		{"sshKey", in.SSHKey},
	} {
		if f.value != "" && !strings.Contains(known, " "+f.path+" ") {
			wrong.add(f.path, "has no meaning for a connection of type "+string(in.Type))
		}
	}
}

func (c Credentials) secrets() map[string]string {
	return map[string]string{"accessKey": c.AccessKey, "secretKey": c.SecretKey, "token": c.Token, "password": c.Password, "sshKey": c.SSHKey}
}

func forbiddenHeader(name string) bool {
	for _, other := range notACredential {
		if strings.EqualFold(name, other) {
			return true
		}
	}
	return false
}

func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func headerText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// A hint tells one secret from another and no more: of a short one even four
// characters would say too much.
const (
	hinted     = 4
	hintedFrom = 12
)

func hint(c Credentials) string {
	for _, secret := range []string{c.SecretKey, c.Token, c.Password} {
		if text := []rune(secret); len(text) >= hintedFrom {
			return string(text[len(text)-hinted:])
		}
	}
	return ""
}
