package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

const (
	analyzed = `{"analysisId":"an_1","createdAt":"2026-03-02T09:15:00.000Z","status":"completed","doi":"10.1/x","result":{"summary":"A sum\u001b[2Jmary.","paper":{"title":"On\nReads","doi":"10.1/x","year":2020},
		"methodology":{"steps":[{"name":"Trim","tools":["fastp","cutadapt"]},{"name":"Count","tools":[]}]},"notes":["Read from the abstract."],
		"workflowSuggestion":{"name":"From a paper","description":"d","confidence":0.8,"definition":{"nodes":[{"id":"trim","name":"Trim reads"}]}}}}`
	failedAnalysis = `{"analysisId":"an_1","createdAt":"2026-03-02T09:15:00.000Z","status":"failed","error":"The PDF has no text."}`
)

// oneLine is JSON as a stream sends it.
func oneLine(text string) string {
	return strings.NewReplacer("\n", "", "\t", "").Replace(text)
}

// frames are messages of an analysis, one after the other.
func frames(list ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range list {
			fmt.Fprintf(w, "data: %s\n\n", data)
		}
	}
}

func result(analysis string) string {
	return `{"type":"result",` + oneLine(analysis)[1:]
}

func TestAPaperIsAnalyzedByItsDOI(t *testing.T) {
	t.Parallel()
	const half = `{"type":"progress","percent":50,"message":"Reading"}`
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		fails  string
	}{
		"listened to":                     {frames(half, result(analyzed)), ""},
		"known already":                   {says(200, `{"success":true,"data":`+analyzed+`}`), ""},
		"more is sent behind the result":  {frames(result(analyzed), `{"type":"error","error":"late"}`), ""},
		"failed":                          {frames(half, result(failedAnalysis)), "the analysis failed: The PDF has no text."},
		"an error on the way":             {frames(half, `{"type":"error","error":"There is no free text of it.","code":"closed_access"}`), "There is no free text of it. (download the PDF and run millrace analyze paper.pdf)"},
		"an error without words":          {frames(`{"type":"error"}`), "–"},
		"broken off":                      {frames(half), "the server closed the connection; run the same command again to continue"},
		"nothing at all":                  {frames(), "the server closed the connection"},
		"no JSON":                         {frames(`{"type":`), "unexpected end of JSON input"},
		"a result that has none":          {frames(`{"type":"result","analysisId":"an_1","createdAt":"2026-03-02T09:15:00.000Z","status":"completed"}`), "the analysis failed: –"},
		"refused":                         {status(429, "Retry-After", "7200"), "try again in 2h 00m"},
		"an answer that is no Millrace's": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, "doesn't respond like a Millrace server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, server := clitest.New(t), &script{steps: []func(http.ResponseWriter){tt.answer}}
			c := &analyzeCommand{Paper: "10.1/x"}
			c.Server = clitest.Serve(t, server.ServeHTTP)
			err := c.Run(d.Console)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || d.Printed.Len() > 0 {
					t.Errorf("%v, printed %q", err, d.Printed)
				}
				return
			}
			for _, want := range []string{"title    On Reads\n", "year     2020\n", "A sum[2Jmary.\n", "  1. Trim\n     with fastp, cutadapt\n  2. Count\n", "Note: Read from the abstract.\n", "Suggested workflow: From a paper (80 % confidence)\n", "trim  Trim reads\n"} {
				if !strings.Contains(d.Printed.String(), want) {
					t.Errorf("no %q in %s", want, d.Printed)
				}
			}
			if err != nil || server.body[0] != `{"doi":"10.1/x"}` && !strings.Contains(server.body[0], `"doi":"10.1/x"`) || server.seen[0].Header.Get("Authorization") != "" {
				t.Errorf("%v, sent %s", err, server.body[0])
			}
		})
	}
}

func TestASuggestionIsSavedAsAFileThatCanBeRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	without := strings.Replace(analyzed, `"workflowSuggestion":{`, `"workflowSuggestion":null,"other":{`, 1)
	for name, tt := range map[string]struct {
		analysis, file, fails string
		json                  bool
	}{
		"saved":             {analyzed, "w.json", "", false},
		"saved beside JSON": {analyzed, "j.json", "", true},
		"none to save":      {without, "none.json", "the analysis suggests no workflow; nothing was saved", false},
		"no such folder":    {analyzed, "gone/w.json", "no such file or directory", false},
		"nothing asked for": {analyzed, "", "", true},
	} {
		d := clitest.New(t)
		c := &analyzeCommand{Paper: "10.1/x"}
		c.Server, c.JSON = clitest.Serve(t, (&script{steps: []func(http.ResponseWriter){frames(result(tt.analysis))}}).ServeHTTP), tt.json
		if tt.file != "" {
			c.Save = filepath.Join(dir, tt.file)
		}
		err := c.Run(d.Console)
		if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.json && !json.Valid(d.Printed.Bytes()) {
			t.Errorf("%s: %s", name, d.Printed)
		}
		if tt.file == "" {
			continue
		}
		text, readErr := os.ReadFile(c.Save)
		if (readErr == nil) != (tt.fails == "") {
			t.Errorf("%s: %v", name, readErr)
		}
		if readErr == nil && (!strings.Contains(string(text), `"name": "From a paper"`) || !strings.Contains(string(text), `"id": "trim"`)) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A PDF is sent as a form. Somebody who is signed in looks for the answer in their list,
// and a visitor asks again, as the same one.
func TestAPDFIsSentAndWaitedFor(t *testing.T) {
	t.Parallel()
	pdf := filepath.Join(t.TempDir(), "a paper.PDF")
	if err := os.WriteFile(pdf, []byte("%PDF-1.7"), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := func(w http.ResponseWriter) {
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: "v1", Path: "/"})
		clitest.Answer(w, 202, `{"success":true,"data":{"analysisId":"an_1","status":"processing"}}`)
	}
	going := says(200, `{"success":true,"data":`+strings.Replace(failedAnalysis, "failed", "processing", 1)+`}`)
	done := says(200, `{"success":true,"data":`+analyzed+`}`)
	failed := says(200, `{"success":true,"data":`+failedAnalysis+`}`)
	for name, tt := range map[string]struct {
		signedIn bool
		steps    []func(http.ResponseWriter)
		calls    string
		fails    string
	}{
		"a visitor":                   {false, []func(http.ResponseWriter){begun, begun, done}, "POST POST POST", ""},
		"a visitor, of a known one":   {false, []func(http.ResponseWriter){done}, "POST", ""},
		"somebody":                    {true, []func(http.ResponseWriter){begun, going, going, done}, "POST GET GET GET", ""},
		"somebody, and it fails":      {true, []func(http.ResponseWriter){begun, failed}, "POST GET", "the analysis failed: The PDF has no text."},
		"somebody, who is signed out": {true, []func(http.ResponseWriter){begun, status(401)}, "POST GET", "run millrace login"},
		"refused":                     {false, []func(http.ResponseWriter){status(400)}, "POST", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, server := clitest.New(t), &script{steps: tt.steps}
			c := &analyzeCommand{Paper: pdf, DOI: "10.1/x"}
			c.Server = clitest.Serve(t, server.ServeHTTP)
			if tt.signedIn {
				d.SignedIn(t, c.Server, line.Grant{Token: "oat_1"})
			}
			err := c.Run(d.Console)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%v", err)
			}
			var calls []string
			for i, r := range server.seen {
				calls = append(calls, r.Method)
				if r.Method == http.MethodPost {
					checkForm(t, r, server.body[i])
				}
				if cookie, _ := r.Cookie("visitor"); i > 0 && !tt.signedIn && (cookie == nil || cookie.Value != "v1") {
					t.Error("it comes back as another visitor")
				}
			}
			if got := strings.Join(calls, " "); got != tt.calls || len(d.Slept) != max(0, len(calls)-1-strings.Count(tt.calls, "POST GET")) {
				t.Errorf("calls %s, waits %v", got, d.Slept)
			}
		})
	}
	for paper, want := range map[string]string{pdf + ".gone.pdf": "there is no file", "missing.PDF": "there is no file missing.PDF"} {
		d := clitest.New(t)
		c := &analyzeCommand{Paper: paper}
		c.Server = "http://127.0.0.1:1"
		if err := c.Run(d.Console); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", paper, err)
		}
	}
	large := filepath.Join(t.TempDir(), "large.pdf")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxPDF+1); err != nil {
		t.Fatal(err)
	}
	d := clitest.New(t)
	c := &analyzeCommand{Paper: large}
	c.Server = "http://127.0.0.1:1"
	if err := c.Run(d.Console); err == nil || !strings.Contains(err.Error(), "has more than 20.0 MB") {
		t.Errorf("one byte too many: %v", err)
	}
}

func checkForm(t *testing.T, r *http.Request, body string) {
	t.Helper()
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		t.Error(err)
	}
	form, err := multipart.NewReader(strings.NewReader(body), params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Error(err)
		return
	}
	file := form.File["file"]
	if form.Value["doi"][0] != "10.1/x" || form.Value["title"] != nil || len(file) != 1 || file[0].Filename != "a paper.PDF" || file[0].Size != 8 {
		t.Errorf("it sends %v and %v", form.Value, form.File)
	}
}
