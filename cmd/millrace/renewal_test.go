package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The lines of the page about certificates, with paths and a port of here, and with a stand-in
// for systemd that signals the server.
func TestTheCertificateIsRenewedAsThePageSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating/installing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### With a certificate of your own\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var commands []string
	var lines string
	for i, part := range strings.Split(section, "```") {
		switch settings, is := strings.CutPrefix(part, "ini\n"); {
		case i%2 == 0: // between examples
		case is:
			lines = settings
		default:
			commands = append(commands, part)
		}
	}
	if len(commands) != 3 || lines == "" {
		t.Fatalf("the page has %q and %q", commands, lines)
	}
	folder, renewed := t.TempDir(), t.TempDir()
	config := filepath.Join(folder, "millrace.conf")
	here := []string{"/etc/millrace/tls", filepath.Join(folder, "tls"), "-g millrace", "", ":443", "127.0.0.1:0", "https://millrace.example.org", "https://127.0.0.1"}
	renew := func() *x509.CertPool {
		certificate, key, pool := selfSigned(t, renewed)
		system(t, "mv", certificate, filepath.Join(renewed, "fullchain.pem"))
		system(t, "mv", key, filepath.Join(renewed, "privkey.pem"))
		return pool
	}
	var pid string
	do := func(text string) string {
		system := fmt.Sprintf("systemctl() { if [ $1 = reload ]; then kill -HUP %s; fi; }\ncd %s\n", pid, renewed)
		return pageCommands(t, system+text, append(here, "admin doctor ", "admin doctor --config "+config+" ")...)
	}

	first := renew()
	do(commands[0])
	settings := "data = " + filepath.Join(folder, "data") + "\n" + strings.NewReplacer(here...).Replace(lines)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := do(commands[1]); !strings.Contains(out, "it ends soon: renew it") || strings.Contains(out, "WRONG") {
		t.Error(out)
	}
	s := launch(t, millrace(t, "serve", "--config", config))
	pid = strconv.Itoa(s.cmd.Process.Pid)
	trusts := func(pool *x509.CertPool) bool {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "http://"), &tls.Config{RootCAs: pool})
		return err == nil && conn.Close() == nil
	}
	if !trusts(first) {
		t.Fatal("the first certificate is not served")
	}
	second := renew()
	do(commands[2])
	await(t, "the second certificate", func() bool { return trusts(second) && !trusts(first) })
}
