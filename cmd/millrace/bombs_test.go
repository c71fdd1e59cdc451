package main

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/papers/paperstest"
	"github.com/millrace/millrace/internal/waittest"
)

// uploaded is how an upload was answered.
type uploaded struct {
	status int
	code   string
	cookie string
	err    error
}

// upload sends a PDF from an address, with headers.
func (s *server) upload(ctx context.Context, pdf []byte, address string, headers ...string) (u uploaded) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "paper.pdf")
	if err != nil {
		return uploaded{err: err}
	}
	_, _ = part.Write(pdf) // into memory
	_ = w.Close()
	req, err := http.NewRequestWithContext(ctx, "POST", s.base+"/api/ai/upload", &b)
	if err != nil {
		return uploaded{err: err}
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.Header.Set("X-Forwarded-For", address)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return uploaded{err: err}
	}
	defer res.Body.Close()
	var answer struct{ Code string }
	u.err = json.NewDecoder(res.Body).Decode(&answer)
	u.status, u.code = res.StatusCode, answer.Code
	for _, c := range res.Cookies() {
		u.cookie = c.Name + "=" + c.Value
	}
	return u
}

// While one visitor's bombs are read, with and without their cookie, another
// visitor's paper is read, and a team's.
func TestBombsOfOneVisitorDelayNoOtherPaper(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data, "--trusted-proxies", "127.0.0.1")
	const bomber, honest = "203.0.113.7", "203.0.113.8"
	known := s.upload(t.Context(), []byte("%PDF-1.7 broken"), bomber)
	if known.status != 400 || known.code != "pdf_unreadable" || known.cookie == "" {
		t.Fatalf("got %+v\n%s", known, s.log)
	}
	token, _, _ := s.signUp("ada")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answers := make(chan uploaded, 10)
	send := func(name string, headers ...string) {
		go func() { answers <- s.upload(ctx, paperstest.Bomb(name), bomber, headers...) }()
	}
	send("one", "Cookie", known.cookie)
	send("two", "Cookie", known.cookie)
	send("three")
	send("four")
	var reading []string
	if !waittest.Until(func() bool {
		reading, _ = filepath.Glob(filepath.Join(data, "tools", "run_*", "work", "out"))
		return len(reading) == 2 // the address has no more places
	}) {
		t.Fatalf("%d bombs are read\n%s", len(reading), s.log)
	}
	paper := paperstest.PDF(paperstest.Sample)
	if u := s.upload(t.Context(), paper, honest); u.status != 200 {
		t.Errorf("the other visitor got %+v", u)
	}
	if u := s.upload(t.Context(), paper, bomber, "Authorization", bearer(token)); u.status != 200 {
		t.Errorf("the team got %+v", u)
	}
	if len(answers) > 0 {
		t.Errorf("a bomb was over first: %+v", <-answers)
	}
	for range 2 {
		if u := <-answers; u.status != 400 || u.code != "pdf_unreadable" {
			t.Errorf("a bomb got %+v\n%s", u, s.log)
		}
	}
	leave() // whoever waits for the others
	for range 2 {
		<-answers
	}
	// What was left behind is over, too, before the folder is removed.
	await(t, "an empty folder", func() bool {
		left, err := filepath.Glob(filepath.Join(data, "tools", "run_*"))
		return err == nil && len(left) == 0
	})
}
