package httpapi_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/papers/paperstest"
)

// form is an upload: a file, and fields by name.
func form(t *testing.T, file []byte, fields ...string) (body string, kind change) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if file != nil {
		part, err := w.CreateFormFile("file", "paper.pdf")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), header("Content-Type", w.FormDataContentType())
}

func TestAnUploadIsReadForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		pdf := paperstest.PDF(paperstest.Sample, "The second page")
		body, kind := form(t, pdf, "doi", "https://doi.org/10.1000/SECRET", "title", "Our secret mill")
		got := h.call("POST", "/api/ai/upload", body, kind, bearer(ada.token)).want(200)
		paper := got.at("data", "result", "paper").(map[string]any)
		if got.text("data", "doi") != "10.1000/secret" || paper["title"] != "Our secret mill" || paper["source"] != "upload" || paper["pageCount"] != 2.0 || paper["openAccess"] != nil {
			t.Errorf("the paper is %v", paper)
		}
		plain, kind := form(t, pdf)
		if again := h.call("POST", "/api/ai/upload", plain, kind, bearer(ada.token)).want(200); again.text("data", "analysisId") != got.text("data", "analysisId") {
			t.Error("the same bytes were read again")
		}
		renamed, ofRenamed := form(t, pdf, "title", "Our well-known mill")
		if again := h.call("POST", "/api/ai/upload", renamed, ofRenamed, bearer(ada.token)).want(200).at("data", "result", "paper").(map[string]any); again["title"] != "Our well-known mill" || again["doi"] != "10.1000/secret" {
			t.Errorf("under another name it is %v", again)
		}
		other := h.call("POST", "/api/ai/upload", plain, kind, bearer(bob.token)).want(200)
		if other.text("data", "analysisId") == got.text("data", "analysisId") || strings.Contains(other.body, "secret") || h.used(bob) != 1 || h.used(ada) != 1 {
			t.Errorf("bob, who used %v, sees %s", h.used(bob), other.body)
		}
		// What it was called never answers for the DOI.
		h.call("GET", "/api/ai/status?doi=10.1000/secret", "", bearer(bob.token)).want(404)
		h.call("POST", "/api/ai/analyze", byDOI("10.1000/secret"), bearer(bob.token)).want(404)
		h.call("POST", "/api/ai/analyze", byDOI("10.1000/secret"), bearer(ada.token)).want(404)
		if h.call("GET", "/api/ai/status?doi=10.1000/secret", "", bearer(ada.token)).want(200).text("data", "status") != "completed" {
			t.Error("a failure hides what was read")
		}
		visitor := h.call("POST", "/api/ai/upload", plain, kind).want(200)
		if visitor.header.Get("Set-Cookie") == "" || h.papers.Asked(paperstest.Unpaywall) != 2 {
			t.Errorf("a visitor gets %v, Unpaywall was asked %d times", visitor.header, h.papers.Asked(paperstest.Unpaywall))
		}
	})
}

func TestBadUploadsAreRefusedAndCostNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	pdf := paperstest.PDF(paperstest.Sample)
	large := append(pdf[:len(pdf):len(pdf)], make([]byte, 20<<20)...)
	try := func(status int, code string, file []byte, fields ...string) {
		t.Helper()
		body, kind := form(t, file, fields...)
		h.call("POST", "/api/ai/upload", body, kind, bearer(ada.token)).wantCode(status, code)
		unsized := func(r *http.Request) { r.ContentLength = -1 }
		h.call("POST", "/api/ai/upload", body, kind, bearer(ada.token), unsized).wantCode(status, code)
	}
	try(413, "too_large", large)
	try(413, "too_large", make([]byte, 30<<20))
	try(415, "unsupported_type", []byte("<html>not a PDF</html>"))
	try(415, "unsupported_type", []byte{})
	try(400, "pdf_unreadable", pdf[:80])
	try(400, "pdf_without_text", paperstest.PDF("Figure 1"))
	try(400, "invalid", nil)
	try(400, "invalid", pdf, "doi", "nonsense")
	try(400, "invalid", pdf, "title", strings.Repeat("x", 1001))
	try(400, "invalid", pdf, "folder", "mine")
	try(400, "invalid", pdf, "title", "a", "title", "b")
	body, kind := form(t, pdf)
	h.call("POST", "/api/ai/upload", body[:len(body)-100], kind, bearer(ada.token)).want(400)
	h.call("POST", "/api/ai/upload", `{"file":"x"}`, bearer(ada.token)).wantCode(415, "unsupported_type")
	h.call("POST", "/api/ai/upload", body, kind, bearer("nonsense")).want(401)
	if used := h.used(ada); used != 0 {
		t.Errorf("they cost %v", used)
	}
	exact := append(pdf[:len(pdf):len(pdf)], make([]byte, 20<<20-len(pdf))...)
	body, kind = form(t, exact, "title", "of just the size")
	h.call("POST", "/api/ai/upload", body, kind, bearer(ada.token)).want(200)
}

// A PDF that cannot be read costs no analysis, but nobody has us try for ever.
func TestUnreadableUploadsAreLimited(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.AI.Limits.FailedPerOwner, o.AI.Limits.FailedPerAddress = 2, 3
	})
	good := paperstest.PDF(paperstest.Sample)
	n := 0
	send := func(good bool, changes ...change) reply {
		n++
		file := []byte(fmt.Sprintf("%%PDF-1.7\nbroken %d", n))
		if good {
			file = paperstest.PDF(paperstest.Sample, fmt.Sprint("Page ", n))
		}
		body, kind := form(t, file)
		return h.call("POST", "/api/ai/upload", body, append(changes, kind)...)
	}
	here, ada := from("203.0.113.7:1"), h.signUp("Ada")
	first := send(false, here).wantCode(400, "pdf_unreadable")
	c, err := http.ParseSetCookie(first.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	me := func(r *http.Request) { r.AddCookie(c) }
	send(true, here, me).want(200)
	send(false, here, me).wantCode(400, "pdf_unreadable")
	over := send(true, here, me).wantCode(429, "unreadable_pdfs_exhausted")
	var wait int
	if _, err := fmt.Sscan(over.header.Get("Retry-After"), &wait); err != nil || wait < 1 || wait > 24*60*60 {
		t.Errorf("Retry-After is %q", over.header.Get("Retry-After"))
	}
	h.call("POST", "/api/ai/analyze", byDOI(mill), here, me).wantCode(429, "unreadable_pdfs_exhausted")
	send(false, here).wantCode(400, "pdf_unreadable") // a new visitor, the third of this address
	send(true, here).wantCode(429, "unreadable_pdfs_exhausted")
	send(true, from("203.0.113.8:1")).want(200)
	send(false, here, bearer(ada.token)).wantCode(400, "pdf_unreadable")
	// An open copy that cannot be read counts as well, one that cannot be had does not.
	h.papers.Add("10.1000/gone", paperstest.Work{Title: "x", PDF: []byte("<html>")})
	h.call("POST", "/api/ai/analyze", byDOI("10.1000/gone"), bearer(ada.token)).wantCode(409, "closed_access")
	h.papers.Add("10.1000/broken", paperstest.Work{Title: "x", PDF: []byte("%PDF-1.7 broken")})
	h.call("POST", "/api/ai/analyze", byDOI("10.1000/broken"), bearer(ada.token)).wantCode(409, "closed_access")
	send(true, bearer(ada.token)).wantCode(429, "unreadable_pdfs_exhausted")
	if used := h.used(ada); used != 0 {
		t.Errorf("they cost %v", used)
	}
	h.pass(24 * time.Hour)
	body, kind := form(t, good)
	h.call("POST", "/api/ai/upload", body, kind, here, me).want(200)
}
