// Package clients speaks HTTP for what people install to use the server from another
// machine: a page for people, the same list for programs and for package installers,
// and the files themselves. Nobody has to sign in for them.
package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/clients"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
)

// API is the part of the HTTP API for clients.
type API struct {
	Catalog *clients.Catalog
}

// Limit bounds how often one address may ask. Installing asks some five times.
var Limit = &kernel.AddressLimit{Name: "clients", Window: limits.Window{Most: 120, Per: time.Minute}}

// Base sends GET /clients to where relative links are right.
func (a *API) Base(*kernel.Exchange) (kernel.Answer, error) { return kernel.SeeOther("/clients/") }

// Show answers GET /clients/: with a page, or with JSON where that is all that is
// accepted.
func (a *API) Show(x *kernel.Exchange) (kernel.Answer, error) {
	if accept := x.Request.Header.Get("Accept"); strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html") {
		return a.List(x)
	}
	list, err := a.Catalog.List()
	if err != nil {
		return kernel.Answer{}, err
	}
	return a.page(x, list, "")
}

// ShowProject answers GET /clients/{file}/ for installers, which ask for what one
// project has (PEP 503).
func (a *API) ShowProject(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Catalog.List()
	if err != nil {
		return kernel.Answer{}, err
	}
	project := x.Request.PathValue("file")
	list = slices.DeleteFunc(list, func(f clients.File) bool { return f.Project != project || project == "" })
	if len(list) == 0 {
		return kernel.Answer{}, fault.NotFound("this server offers no package of this name: /clients/ lists what it has")
	}
	return a.page(x, list, project)
}

func (a *API) page(x *kernel.Exchange, list []clients.File, project string) (kernel.Answer, error) {
	view := pages.Clients{Project: project}
	for _, c := range describe(x.Base(), list) {
		shown := pages.Client{Name: c.Name, Link: "/clients/" + c.Name + "#sha256=" + c.Sha256, SHA256: c.Sha256, Size: size(c.Size)}
		shown.Project, shown.Platform, shown.Install = kernel.OrEmpty(c.Project), kernel.OrEmpty(c.Platform), kernel.OrEmpty(c.Install)
		if c.Project != nil {
			view.Packages = append(view.Packages, shown)
		} else {
			view.Programs = append(view.Programs, shown)
		}
	}
	ans, err := x.DrawPage("clients", view)
	if err != nil || ans.Status != 0 {
		return ans, err
	}
	return revalidated(x, ans, string(ans.Raw)), nil
}

// List answers GET /clients/index.json.
func (a *API) List(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Catalog.List()
	if err != nil {
		return kernel.Answer{}, err
	}
	return revalidated(x, kernel.Answer{Data: describe(x.Base(), list)}, fmt.Sprintf("json %s %+v", x.Base(), list)), nil
}

// revalidated is an answer that may be kept as long as the server confirms it; of
// says what it depends on.
func revalidated(x *kernel.Exchange, ans kernel.Answer, of string) kernel.Answer {
	sum := sha256.Sum256([]byte(of))
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	ans = ans.With("ETag", tag).With("Cache-Control", "no-cache").With("Vary", "Accept, Origin")
	if x.Request.Header.Get("If-None-Match") == tag {
		ans.Status, ans.Raw = http.StatusNotModified, nil
	}
	return ans
}

// describe is the list as the API shows it.
func describe(base string, list []clients.File) []api.ClientFile {
	out := make([]api.ClientFile, len(list))
	for i, f := range list {
		out[i] = api.ClientFile{
			Name: f.Name, Kind: string(f.Kind), Project: kernel.OrNull(f.Project), Version: kernel.OrNull(f.Version), Platform: kernel.OrNull(f.Platform),
			Size: f.Size, Sha256: f.SHA256, URL: base + "/clients/" + f.Name, Install: kernel.OrNull(install(base, f, list)),
		}
	}
	return out
}

// install is the command that installs a file after checking its hash. The Snakemake
// plugin comes with the client, which it needs and does not name: an installer that
// was told the name alone would take a stranger's package from a package index.
func install(base string, f clients.File, list []clients.File) string {
	at := base + "/clients/" + f.Name
	switch f.Kind {
	case clients.Python:
		return "pip install " + requirement(base, f)
	case clients.Snakemake:
		needed := []string{"pip", "install"}
		for _, other := range list {
			if other.Kind == clients.Python {
				needed = append(needed, requirement(base, other))
			}
		}
		return strings.Join(append(needed, requirement(base, f)), " ")
	case clients.Program:
		check := "sha256sum"
		if strings.HasPrefix(f.Platform, "darwin/") {
			check = "shasum -a 256"
		}
		if strings.HasPrefix(f.Platform, "windows/") {
			return ""
		}
		return "curl -fo millrace '" + at + "' && echo '" + f.SHA256 + "  millrace' | " + check + " -c && chmod +x millrace"
	}
	return ""
}

// requirement names a wheel as PEP 508 does, in quotes for a shell.
func requirement(base string, f clients.File) string {
	return "'" + f.Project + " @ " + base + "/clients/" + f.Name + "#sha256=" + f.SHA256 + "'"
}

func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KB", (n+1<<10-1)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// Send answers GET /clients/{file}, whole or in ranges.
func (a *API) Send(x *kernel.Exchange) (kernel.Answer, error) {
	f, content, err := a.Catalog.Open(x.Request.PathValue("file"))
	if errors.Is(err, fs.ErrNotExist) {
		return kernel.Answer{}, fault.NotFound("this server offers no file of this name: /clients/ lists what it has")
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, r *http.Request) {
		defer content.Close()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) // not every connection has one
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="`+f.Name+`"`)
		h.Set("ETag", `"`+f.SHA256+`"`)
		h.Set("Cache-Control", "no-cache")
		if f.Project != "" { // the name changes with the content
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeContent(w, r, "", f.ModifiedAt, content)
	}}, nil
}

// sendTime is how long a download may take.
const sendTime = time.Hour
