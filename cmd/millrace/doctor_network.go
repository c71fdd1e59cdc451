package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// answersWithin is how long the doctor waits for each answer.
const answersWithin = 5 * time.Second

// doctorClient asks ourselves, by whatever name the certificate has, and others.
func doctorClient(self bool) *http.Client {
	return &http.Client{Timeout: answersWithin, Transport: &http.Transport{
		DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: self},
	}}
}

// checkIssuers asks each issuer for its discovery document.
func (s *settings) checkIssuers(ctx context.Context) error {
	providers, err := s.providers()
	if err != nil {
		return nil // the check of the settings says why
	}
	var errs []error
	for _, p := range providers {
		if err := checkIssuer(ctx, p.Issuer); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

func checkIssuer(ctx context.Context, issuer string) error {
	address := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	var document struct{ Issuer string }
	if err := getJSON(ctx, doctorClient(false), address, &document); err != nil {
		return fmt.Errorf("people cannot sign in: %w", err)
	}
	if document.Issuer != issuer {
		return fmt.Errorf("people cannot sign in: %s says that the issuer is %q, and --oidc-issuers says %q: both must be the same", address, document.Issuer, issuer)
	}
	return nil
}

func getJSON(ctx context.Context, client *http.Client, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(into); err != nil {
		return fmt.Errorf("%s: the answer is not JSON: %w", address, err)
	}
	return nil
}

// checkPorts looks whether the addresses of the server are free or are used by a server of ours.
func (s *settings) checkPorts(ctx context.Context) (list []finding) {
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
	}
	for _, port := range []struct{ setting, address, path string }{{"--listen", s.Listen, "/api/health"}, {"--admin-listen", s.AdminListen, "/health"}} {
		if port.address == "" {
			continue
		}
		if port.setting == "--admin-listen" {
			scheme = "http"
		}
		list = append(list, checkPort(ctx, "port of "+port.setting+" "+port.address, port.address, scheme+"://"+reachableAt(port.address)+port.path))
	}
	return list
}

func checkPort(ctx context.Context, what, address, ask string) finding {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return finding{what: what + " (free)", err: l.Close()}
	case errors.Is(err, syscall.EADDRINUSE) && isOurs(ctx, ask):
		return finding{what: what + " (used by Millrace)"}
	case errors.Is(err, syscall.EADDRINUSE):
		return finding{what: what, err: errors.New("another program uses it: stop that program, or choose another address")}
	case errors.Is(err, syscall.EACCES):
		return finding{what: what, warning: true, err: errors.New("this user cannot open it by itself: the systemd unit of Millrace allows it (AmbientCapabilities=CAP_NET_BIND_SERVICE)")}
	}
	return finding{what: what, err: err}
}

// reachableAt is an address that reaches a listener on this one.
func reachableAt(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// isOurs reports whether a server or worker of ours answers.
func isOurs(ctx context.Context, address string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	resp, err := doctorClient(true).Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return err == nil && resp.StatusCode == http.StatusOK && (strings.Contains(string(text), `"version"`) || string(text) == "ok\n")
}

// renewBefore is how long before its end a certificate should have been renewed.
const renewBefore = 14 * 24 * time.Hour

// checkCertificate looks at the certificate with which the server ends TLS.
func (s *settings) checkCertificate(now time.Time) finding {
	f := finding{what: "certificate " + s.TLSCert}
	pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: the user of the service must be able to read certificate and key", err)
	}
	if err != nil {
		f.err = err
		return f
	}
	leaf := pair.Leaf
	f.what += " (until " + leaf.NotAfter.UTC().Format(time.DateOnly) + ")"
	switch {
	case now.After(leaf.NotAfter):
		f.err = errors.New("it has expired: renew it, then run systemctl reload millrace")
	case now.Before(leaf.NotBefore):
		f.err = fmt.Errorf("it is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case now.Add(renewBefore).After(leaf.NotAfter):
		f.err, f.warning = errors.New("it ends soon: renew it, then run systemctl reload millrace"), true
	default:
		f.err = s.checkNames(leaf)
	}
	return f
}

// checkNames looks whether the certificate is for the addresses that people use.
func (s *settings) checkNames(leaf *x509.Certificate) error {
	var errs []error
	for _, text := range s.PublicURLs {
		if u, err := url.Parse(text); err == nil && u.Scheme == "https" {
			errs = append(errs, leaf.VerifyHostname(u.Hostname()))
		}
	}
	return errors.Join(errs...)
}

// greets reports whether a mail server greets us.
func greets(ctx context.Context, u *url.URL) error {
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "smtps":
		port = "465"
	case port == "":
		port = "25"
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	dialer := &net.Dialer{}
	var conn net.Conn
	var err error
	if address := net.JoinHostPort(u.Hostname(), port); u.Scheme == "smtps" {
		conn, err = (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return fmt.Errorf("the mail server does not answer: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, 1000)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the mail server does not greet us (for a port with TLS from the start, write smtps://): %w", err)
	}
	if !strings.HasPrefix(line, "220") {
		return fmt.Errorf("the mail server refuses us: %.200q", strings.TrimSpace(line))
	}
	return nil
}

// apparmorProfile lifts Ubuntu's restriction for us. The package has it.
const apparmorProfile = "/etc/apparmor.d/millrace"

// checkNamespaces says which rule of the kernel keeps users from making namespaces, which
// sandboxes are made of. Root may make them anyway.
func checkNamespaces(root bool, read func(path string) ([]byte, error)) error {
	is := func(path, value string) bool {
		text, err := read(path)
		return err == nil && strings.TrimSpace(string(text)) == value
	}
	switch {
	case root:
		return nil
	case is("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		return errors.New("this system forbids them: sysctl -w kernel.unprivileged_userns_clone=1, and the same in /etc/sysctl.d")
	case is("/proc/sys/user/max_user_namespaces", "0"):
		return errors.New("this system allows none: raise user.max_user_namespaces with sysctl, and in /etc/sysctl.d")
	case !is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		return nil
	}
	if _, err := read(apparmorProfile); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("this system restricts them (kernel.apparmor_restrict_unprivileged_userns=1, as on Ubuntu 24.04), and the profile that lifts that for Millrace is missing: install the package, which has it as %s", apparmorProfile)
	}
	return fmt.Errorf("this system restricts them (kernel.apparmor_restrict_unprivileged_userns=1, as on Ubuntu 24.04): load the profile that lifts that for Millrace with apparmor_parser --replace %s", apparmorProfile)
}

// checkUserNamespaces names the rule where the sandbox does not work.
func (s *settings) checkUserNamespaces(sandbox error) error {
	if s.Sandbox == "none" || sandbox == nil {
		return nil
	}
	return checkNamespaces(os.Geteuid() == 0, os.ReadFile)
}
