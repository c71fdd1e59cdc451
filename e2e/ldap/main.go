// Command ldap is Dex with its LDAP connector in front of a directory of two people,
// for tests. It prints its issuer, and ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/jimlambrt/gldap"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// entry is a person or a group of the directory.
type entry struct {
	dn         string
	password   string
	attributes map[string][]string
}

const (
	people = "ou=people,dc=example,dc=org"
	groups = "ou=groups,dc=example,dc=org"
)

var directory = []entry{
	{dn: "cn=dex,dc=example,dc=org", password: "dex"},
	{"uid=ada," + people, "lovelace", map[string][]string{"uid": {"ada"}, "mail": {"ada@example.org"}, "cn": {"Ada Lovelace"}}},
	{"uid=eve," + people, "moneypenny", map[string][]string{"uid": {"eve"}, "mail": {"eve@example.com"}, "cn": {"Eve Moneypenny"}}},
	{"cn=lab," + groups, "", map[string][]string{"cn": {"lab"}, "member": {"uid=ada," + people}}},
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: ldap FOLDER-OF-DEX'S-PAGES")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(pages string) error {
	host, err := serveDirectory()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	issuer := "http://" + l.Addr().String()
	store, err := storageOf(host)
	if err != nil {
		return err
	}
	quiet := logrus.New()
	quiet.SetOutput(os.Stderr)
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer: issuer, Storage: store, SkipApprovalScreen: true, Logger: quiet, Web: server.WebConfig{Dir: pages}, PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	fmt.Println("issuer", issuer)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(l, dex)
}

// storageOf is what Dex knows: one client and one connector, set up as
// docs/operating/sign-in.md says.
func storageOf(host string) (storage.Storage, error) {
	store := memory.New(logrus.New())
	err := store.CreateClient(storage.Client{
		ID: "millrace", Secret: "a secret of tests", Name: "Millrace", RedirectURIs: []string{"http://127.0.0.1:8080/auth/oidc/institute/callback"},
	})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"host": host, "insecureNoSSL": true, "bindDN": "cn=dex,dc=example,dc=org", "bindPW": "dex",
		"userSearch":  map[string]string{"baseDN": people, "username": "uid", "idAttr": "uid", "emailAttr": "mail", "nameAttr": "cn"},
		"groupSearch": map[string]string{"baseDN": groups, "userAttr": "DN", "groupAttr": "member", "nameAttr": "cn"},
	})
	if err != nil {
		return nil, err
	}
	return store, store.CreateConnector(storage.Connector{ID: "ldap", Type: "ldap", Name: "LDAP", Config: config})
}

// serveDirectory answers binds and searches for one attribute, which is what Dex asks.
func serveDirectory() (host string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	host = l.Addr().String()
	if err := l.Close(); err != nil { // the library listens itself
		return "", err
	}
	s, err := gldap.NewServer()
	if err != nil {
		return "", err
	}
	r, err := gldap.NewMux()
	if err != nil {
		return "", err
	}
	if err := r.Bind(bind); err != nil {
		return "", err
	}
	if err := r.Search(search); err != nil {
		return "", err
	}
	if err := s.Router(r); err != nil {
		return "", err
	}
	go func() { log.Fatal(s.Run(host)) }()
	return host, nil
}

func bind(w *gldap.ResponseWriter, r *gldap.Request) {
	answer := r.NewBindResponse(gldap.WithResponseCode(gldap.ResultInvalidCredentials))
	defer func() { _ = w.Write(answer) }()
	m, err := r.GetSimpleBindMessage()
	if err == nil && slices.ContainsFunc(directory, func(e entry) bool { return e.dn == m.UserName && e.password != "" && e.password == string(m.Password) }) {
		answer.SetResultCode(gldap.ResultSuccess)
	}
}

func search(w *gldap.ResponseWriter, r *gldap.Request) {
	answer := r.NewSearchDoneResponse(gldap.WithResponseCode(gldap.ResultOperationsError))
	defer func() { _ = w.Write(answer) }()
	m, err := r.GetSearchMessage()
	if err != nil {
		return
	}
	for _, e := range directory {
		if e.fits(m.Filter) {
			_ = w.Write(r.NewSearchResponseEntry(e.dn, gldap.WithAttributes(e.attributes)))
		}
	}
	answer.SetResultCode(gldap.ResultSuccess)
}

func (e entry) fits(filter string) bool {
	for name, values := range e.attributes {
		for _, v := range values {
			if filter == "("+name+"="+v+")" {
				return true
			}
		}
	}
	return false
}
