package safedial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
)

// ErrRedirect is why FewRedirects did not follow a redirect.
var ErrRedirect = errors.New("it redirects too often, or to an address that is not https")

const redirects = 5

// FewRedirects is for http.Client.CheckRedirect: it follows five redirects, and none that
// leaves https.
func FewRedirects(r *http.Request, before []*http.Request) error {
	r.Header.Del("Referer") // the path of an address may hold a password
	if len(before) > redirects || before[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return ErrRedirect
	}
	return nil
}

// Reason is why a request failed, for people whom the address does not concern. It names
// neither the address, which may hold a password, nor what the name became.
func Reason(err error) string {
	_, unknown := errors.AsType[*net.DNSError](err)
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, ErrPrivate):
		return "it is in a private network, which the operator can allow with --fetch-allow-private"
	case errors.Is(err, ErrRedirect):
		return ErrRedirect.Error()
	case errors.Is(err, ErrInClear):
		return ErrInClear.Error()
	case ok && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	case unknown:
		return "its name is unknown"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case isCertificate(err):
		return "its certificate cannot be trusted"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection broke off"
	}
	return "the connection failed"
}

func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}
