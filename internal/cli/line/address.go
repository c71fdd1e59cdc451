package line

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultServer is where a server that was started without settings listens.
const DefaultServer = "http://127.0.0.1:8080"

// ServerURL is the address in its one form, by which credentials are kept.
func ServerURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		scheme := "https://"
		if u, err := url.Parse("//" + text); err == nil && Loopback(u.Hostname()) {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q is not a server address such as https://millrace.example.org", text)
	}
	usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(u.Host), usual), ":"), nil
}

// Loopback reports whether a host is this machine itself, where nobody listens between.
func Loopback(host string) bool {
	host = strings.ToLower(host)
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// HTTPClient waits long for an answer to begin, and for ever for it to end:
// streams and large files are answers, too.
func HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
		MaxIdleConnsPerHost:   16, // small files and the parts of large ones go over several
		ForceAttemptHTTP2:     true,
	}}
}

// Explained is a failure with what to do about it.
type Explained struct {
	Err  error
	Hint string
}

// Error adds the hint.
func (e Explained) Error() string { return e.Err.Error() + " (" + e.Hint + ")" }

// Unwrap gives the failure itself.
func (e Explained) Unwrap() error { return e.Err }
