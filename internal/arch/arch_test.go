// Package arch tests the structure of the code: which way imports point, and
// which package may use which library.
package arch

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/millrace/millrace/"

// mayImport lists, for each floor, the floors it may look down on. A package
// also sees the rest of its own home; rooms do not see one another.
var mayImport = map[string][]string{
	"domain":   {},
	"rooms":    {"domain", "guards", "formats"},
	"engine":   {"domain", "rooms", "wire", "guards"},
	"adapters": {"domain", "rooms", "wire", "guards"},
	"wire":     {},
	"guards":   {},
	"formats":  {},
	"contract": {},
	"httpapi":  {"domain", "rooms", "contract", "wire", "guards"},
	"client":   {"contract"},
	"cli":      {"client", "contract", "formats"},
	"cmd":      {"domain", "rooms", "engine", "adapters", "httpapi", "contract", "cli", "web", "wire"},
	"web":      {},
	"arch":     {},
	"tools":    {}, // what builds releases
}

// readByClients is the rules of the domain to which the command line, too, holds what
// servers send.
var readByClients = []string{module + "internal/domain/folders"}

// floorOf says where each home is.
var floorOf = map[string]string{
	"domain": "domain",

	"workflows": "rooms", "runs": "rooms", "files": "rooms", "billing": "rooms",
	"ai": "rooms", "sharing": "rooms", "identity": "rooms", "account": "rooms", "secrets": "rooms", "audit": "rooms", "connections": "rooms", "notifications": "rooms", "environments": "rooms", "attempts": "rooms", "operator": "rooms",
	"upkeep": "rooms",

	"engine": "engine",

	"store": "adapters", "objects": "adapters", "payments": "adapters", "mail": "adapters", "webhook": "adapters",
	"llm": "adapters", "papers": "adapters", "collab": "adapters", "freedisk": "adapters",
	"metrics": "adapters", "tracing": "adapters", "remote": "adapters", "git": "adapters",

	"clock":    "wire", // what everybody needs who compares times of several machines
	"safedial": "wire", // what everybody needs who connects to strangers
	"offline":  "wire", // what everybody needs who fetches what a machine without network cannot
	"turns":    "wire", // what everybody needs who transfers for many teams
	"socket":   "wire", // what everybody needs who has news for many
	"sizetest": "wire", // how much tests do that could go on forever
	"waittest": "wire", // what everybody's tests need who wait for another process

	"panics": "guards", // what everybody needs who works for many in one process, rooms too

	"definitionfile": "formats", // what the server and the command line read alike

	"httpapi": "httpapi", "api": "contract", "docs": "contract", "client": "client", "cli": "cli",
	"cmd": "cmd", "web": "web", "clients": "contract", "arch": "arch", "tools": "tools", "deploy": "tools",
}

// impure would let the world into the domain.
var impure = []string{"context", "os", "os/exec", "io/fs", "net", "net/http", "database/sql", "log/slog"}

// domainLibraries are the libraries a part of the domain is built on.
var domainLibraries = map[string][]string{
	"internal/domain/ids":     {"github.com/google/uuid"},
	"internal/domain/credits": {"github.com/go-json-experiment/json"},
	"internal/domain/bounds":  {"github.com/google/cel-go"},
	"internal/domain/cron":    {"github.com/robfig/cron"},
	"internal/domain/search":  {"golang.org/x/text"},
	"internal/domain/graph": {
		"github.com/google/cel-go", "github.com/santhosh-tekuri/jsonschema",
		"github.com/go-json-experiment/json", "golang.org/x/text",
	},
}

// drivers belong to one home each; a room that needs one is a room that knows
// too much.
var drivers = map[string]string{
	"database/sql":                           "store",
	"github.com/jackc/":                      "store",
	"modernc.org/":                           "store",
	"github.com/pressly/goose":               "store",
	"github.com/wneessen/go-mail":            "mail",
	"github.com/minio/":                      "objects remote",
	"github.com/stripe/":                     "payments",
	"codeberg.org/go-pdf/":                   "payments",
	"github.com/go-fonts/":                   "payments",
	"github.com/yuin/goldmark":               "httpapi",
	"github.com/prometheus/":                 "httpapi metrics cmd",
	"net/http":                               "httpapi client api cli cmd objects payments papers llm collab identity engine safedial tracing remote webhook git",
	"github.com/google/go-containerregistry": "engine tools",
	"k8s.io/":                                "engine",
	"sigs.k8s.io/":                           "engine",
	"golang.org/x/net":                       "engine",
	"go.opentelemetry.io/":                   "tracing",
	"github.com/alecthomas/kong":             "cmd cli",
	"github.com/coreos/go-systemd":           "cmd",
	"golang.org/x/term":                      "cli",
	"github.com/lmittmann/tint":              "cmd",
	"github.com/oapi-codegen/":               "client api",
	"github.com/golang-jwt/jwt":              "identity",
	"golang.org/x/crypto":                    "identity remote git tools",
	"github.com/go-git/":                     "git",
	"github.com/modelcontextprotocol/":       "httpapi",
	"github.com/coder/websocket":             "collab",
	"github.com/coreos/go-oidc":              "identity",
	"golang.org/x/oauth2":                    "identity",
	"github.com/clerk/clerk-sdk-go":          "identity",
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := floorOf[home(p.ImportPath)]
		if from == "" {
			t.Errorf("%s is in no room: add it to floorOf or move it", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			checkImport(t, p.ImportPath, from, imported)
		}
	}
}

// ofHTTP says which packages of httpapi those of it import that are not plain
// rooms. The package at its top, the table of routes, knows them all.
var ofHTTP = map[string][]string{
	"events": {}, "pages": {}, "help": {},
	"kernel":  {"pages"},
	"sharing": {"kernel", "runs"},                                                                                                                                                                        // shows the results of runs
	"account": {"kernel", "ai", "audit", "billing", "connections", "environments", "files", "identity", "notifications", "reported", "runs", "schedules", "secrets", "sharing", "webhooks", "workflows"}, // exports what every room has
}

// What is HTTP of one room stands on the kernel and knows no other room.
func TestTheRoomsOfHTTPStandOnTheKernel(t *testing.T) {
	const top = module + "internal/httpapi/"
	for _, p := range packages(t) {
		from, below := strings.CutPrefix(p.ImportPath, top)
		if !below {
			continue
		}
		may, special := ofHTTP[from]
		if !special {
			may = []string{"kernel", "events", "pages", "help"}
		}
		for _, imported := range p.Imports {
			if to, ours := strings.CutPrefix(imported, top); ours && !slices.Contains(may, to) {
				t.Errorf("httpapi/%s imports httpapi/%s", from, to)
			}
			if imported == strings.TrimSuffix(top, "/") {
				t.Errorf("httpapi/%s imports the table of routes", from)
			}
		}
	}
}

// alone says why a package stands apart although only one other imports it. What
// cmd and the table of routes import needs no reason: they put the parts together.
var alone = map[string]string{
	"api/reference":                                  "one page, which needs nothing of a server",
	"internal/cli/gitfile":                           "calls the person's own git, and nothing of the API",
	"internal/cli/reproduce":                         "writes scripts that run without Millrace",
	"internal/cli/runs":                              "the commands of one noun, as many as those of all others",
	"internal/domain/cron":                           "pure, and the only one that knows the library's fields",
	"internal/domain/document":                       "pure: a definition and its document become each other",
	"internal/domain/graph/layout":                   "knows numbers only, no steps",
	"internal/domain/reuse":                          "pure: it foretells what the engine will do",
	"internal/engine/failures":                       "pure: it says why an attempt failed",
	"internal/engine/inputs":                         "what a run is given, for all runs of a worker",
	"internal/engine/plan":                           "pure: it says what can start",
	"internal/engine/pool":                           "locks of its own, which runs never hold",
	"internal/engine/suspects":                       "its tests measure the memory of their whole process",
	"internal/engine/runclock":                       "pure: it says what is billed",
	"internal/httpapi/help":                          "makes pages of files, and speaks no HTTP",
	"internal/workflows/pipelinefile":                "reads the files of strangers, and keeps nothing",
	"internal/engine/executor/kubernetes":            "an adapter",
	"internal/httpapi/attempts":                      "for programs beside tasks, not for people",
	"internal/engine/executor/environments/channels": "reads what strangers publish, and builds nothing",
	"internal/engine/executor/environments/machine":  "knows the files of pip and conda, and nothing of indexes",
}

func TestAPackageWithOneImporterHasAReason(t *testing.T) {
	importers := map[string][]string{}
	all := packages(t)
	for _, p := range all {
		for _, imported := range p.Imports {
			importers[imported] = append(importers[imported], strings.TrimPrefix(p.ImportPath, module))
		}
	}
	for _, p := range all {
		name := strings.TrimPrefix(p.ImportPath, module)
		users := importers[p.ImportPath]
		needs := len(users) == 1 && !slices.Contains([]string{"cmd/millrace", "internal/httpapi"}, users[0]) && !strings.HasSuffix(name, "test")
		if reason := alone[name]; needs && reason == "" {
			t.Errorf("only %s imports %s: merge the two, or say in alone why not", users[0], name)
		} else if !needs && reason != "" {
			t.Errorf("%s needs no reason any more: take it out of alone", name)
		}
	}
}

// heavy is what libraries bring along that the program needs nothing of.
var heavy = map[string]string{
	"google.golang.org/grpc":             "internal/tracing sends by HTTP",
	"k8s.io/client-go/kubernetes":        "the driver of Kubernetes has a scheme of what it uses",
	"k8s.io/kube-openapi/pkg/util/proto": "the driver of Kubernetes merges pod templates itself",
	"github.com/ProtonMail/go-crypto":    "nobody checks signatures of commits",
	"testing":                            "tests are not part of the program",
}

func TestTheProgramLinksNothingHeavy(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"cmd/millrace").Output()
	if err != nil {
		t.Fatal(err)
	}
	for linked := range strings.FieldsSeq(string(out)) {
		for path, instead := range heavy {
			if linked == path || strings.HasPrefix(linked, path+"/") {
				t.Errorf("cmd/millrace links %s: %s", linked, instead)
			}
		}
	}
}

func checkImport(t *testing.T, importer, from, imported string) {
	t.Helper()
	if strings.HasPrefix(imported, module) {
		to := floorOf[home(imported)]
		rules := from == "cli" && slices.Contains(readByClients, imported)
		if home(imported) != home(importer) && !slices.Contains(mayImport[from], to) && !rules {
			t.Errorf("%s (%s) imports %s (%s)", importer, from, imported, to)
		}
		return
	}
	if from == "domain" && slices.Contains(impure, imported) {
		t.Errorf("%s imports %s: the domain does no I/O", importer, imported)
	}
	if library := strings.Contains(strings.Split(imported, "/")[0], "."); from == "domain" && library {
		allowed := domainLibraries[strings.TrimPrefix(importer, module)]
		if !slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(imported, a) }) {
			t.Errorf("%s imports %s: the domain stands on few libraries", importer, imported)
		}
	}
	if strings.HasSuffix(importer, "test") {
		return // storetest, readertest, …: only tests import them
	}
	for driver, homes := range drivers {
		if strings.HasPrefix(imported, driver) && !slices.Contains(strings.Fields(homes), home(importer)) && from != "domain" {
			t.Errorf("%s imports %s, which belongs to %s", importer, imported, homes)
		}
	}
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// home is the top folder of a package: "store" for internal/store/storetest.
func home(path string) string {
	path = strings.TrimPrefix(path, module)
	path = strings.TrimPrefix(path, "internal/")
	top, _, _ := strings.Cut(path, "/")
	return top
}
