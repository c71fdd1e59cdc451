package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// SIGHUP has a server read its certificate and its settings again. What cannot change
// while it runs, and what cannot be read, is logged and stays as it is.
func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	data, config := t.TempDir(), filepath.Join(t.TempDir(), "millrace.conf")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, key, first := selfSigned(t, data)
	settings := fmt.Sprintf("tls-cert = %s\ntls-key = %s\n", certificate, key)
	write(config, settings)
	s := start(t, "--data", data, "--config", config)
	trusts := func(pool *x509.CertPool) bool {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "http://"), &tls.Config{RootCAs: pool})
		return err == nil && errors.Join(conn.Close()) == nil
	}
	logs := func(words ...string) {
		t.Helper()
		await(t, strings.Join(words, " and "), func() bool {
			for _, w := range words {
				if !strings.Contains(s.log.String(), w) {
					return false
				}
			}
			return true
		})
	}
	hup := func() {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if !trusts(first) {
		t.Fatal("the first certificate is not served")
	}

	_, _, second := selfSigned(t, data)
	write(config, settings+"log-level = debug\ndrain = 7s\nsecret-key = never to be logged\n")
	hup()
	logs("reloaded", "log-level", "need a restart", "drain", "secret-key")
	await(t, "the second certificate", func() bool { return trusts(second) && !trusts(first) })
	if strings.Contains(s.log.String(), "never to be logged") {
		t.Error("the value of a setting is logged")
	}

	write(certificate, "no certificate")
	write(config, "no setting")
	hup()
	logs("cannot reload the certificate", "cannot read the settings again")
	if !trusts(second) {
		t.Error("the certificate that was good is not served any more")
	}
}

// A worker, and a server without a certificate or a file of settings, live through it.
func TestSIGHUPEndsNobody(t *testing.T) {
	t.Parallel()
	db := storetest.Postgres(t)
	s := start(t, "--data", t.TempDir(), "--database-url", db, "--secret-key", "shared by all replicas")
	worker := &member{worker: true, args: []string{"--data", t.TempDir(), "--database-url", db, "--secret-key", "shared by all replicas"}}
	worker.start(t)
	for name, p := range map[string]*server{"server": s, "worker": worker.server} {
		for n := range 2 {
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			await(t, "a reload of the "+name, func() bool { return strings.Count(p.log.String(), `"reloaded`) > n })
		}
	}
	s.want(200, "GET", "/api/health/ready", "")
}

// A server that drains has nothing to reload, and SIGHUP must not cut its requests off.
func TestSIGHUPDoesNotEndADrainingServer(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--drain", "5m")
	address := strings.TrimPrefix(s.base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	read := func() int {
		t.Helper()
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.log)
		}
		return resp.StatusCode
	}
	signal := func(which syscall.Signal) {
		t.Helper()
		if err := s.cmd.Process.Signal(which); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(conn, "POST /auth/sign-in HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", address)
	if status := read(); status != http.StatusContinue { // from now on the request is open
		t.Fatal(status)
	}
	signal(syscall.SIGTERM)
	await(t, "the end of new connections", func() bool {
		c, err := net.Dial("tcp", address)
		return err != nil || c.Close() != nil
	})
	signal(syscall.SIGHUP)
	fmt.Fprint(conn, "{}")
	if status := read(); status != http.StatusBadRequest {
		t.Error(status)
	}
	<-s.drained
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.log)
	}
}

// Whether a server ends TLS itself is decided when it starts. A certificate that is added
// or taken away needs a restart, and the log says so.
func TestSIGHUPNeitherBeginsNorEndsTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certificate, key, _ := selfSigned(t, folder)
	with := map[string]any{"tls-cert": certificate, "tls-key": key, "log-level": "debug"}
	without := map[string]any{"tls-cert": "", "tls-key": "", "log-level": "debug"}
	other := map[string]any{"tls-cert": certificate + ".new", "tls-key": key, "log-level": "debug"}
	for name, c := range map[string]struct {
		given, next      map[string]any
		changed, restart []string
	}{
		"added":   {without, with, nil, []string{"tls-cert", "tls-key"}},
		"removed": {with, without, nil, []string{"tls-cert", "tls-key"}},
		"moved":   {with, other, []string{"tls-cert"}, nil},
	} {
		r := &reloader{given: maps.Clone(c.given)}
		changed, restart := r.apply(c.next)
		if !slices.Equal(changed, c.changed) || !slices.Equal(restart, c.restart) {
			t.Errorf("%s: changed %v, restart %v", name, changed, restart)
		}
		if (r.text("tls-cert") == "") != (c.given["tls-cert"] == "") {
			t.Errorf("%s: the certificate in force is %q", name, r.text("tls-cert"))
		}
	}
}
