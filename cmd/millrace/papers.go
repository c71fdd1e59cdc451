package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/llm"
	"github.com/millrace/millrace/internal/papers"
)

// paperProblems is what is wrong with the settings for papers and chat.
func (s *settings) paperProblems() error {
	var errs []error
	if (s.AIBaseURL == "") != (s.AIModel == "") {
		errs = append(errs, errors.New("--ai-base-url and --ai-model go together"))
	}
	for name, text := range map[string]string{
		"--ai-base-url": s.AIBaseURL, "--crossref-url": s.CrossrefURL, "--openalex-url": s.OpenAlexURL, "--unpaywall-url": s.UnpaywallURL,
	} {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https")) {
			errs = append(errs, fmt.Errorf("%s: %q is not an address such as https://api.example.org/v1", name, text))
		}
	}
	if s.ContactEmail != "" && !strings.Contains(s.ContactEmail, "@") {
		errs = append(errs, fmt.Errorf("--contact-email: %q is not an email address", s.ContactEmail))
	}
	return errors.Join(errs...)
}

func (s *settings) checkContact() error {
	if s.ContactEmail == "" {
		return errors.New("--contact-email is not set: Unpaywall may refuse to say where open copies are")
	}
	return nil
}

// buildAI makes the room of papers and chat, and the folder of PDFs on their
// way.
func (h *application) buildAI(s *settings, origins []string) (*ai.Chat, string, error) {
	scratch := filepath.Join(s.Data, "papers")
	life := scratchLife
	if s.Embedded() { // there is no neighbour
		life = 0
	}
	if err := emptyScratch(scratch, life); err != nil {
		return nil, "", err
	}
	h.scratch = scratch
	contact := s.ContactEmail
	if u, err := url.Parse(origins[0]); err == nil {
		contact = cmp.Or(contact, "millrace@"+u.Hostname())
	}
	crowd := papers.DefaultCrowd()
	if err := h.buildTools(s, crowd.Reading); err != nil {
		return nil, "", err
	}
	library := papers.New(papers.Options{
		Sandbox: h.tools, Crowd: crowd, CrossrefURL: s.CrossrefURL, OpenAlexURL: s.OpenAlexURL, UnpaywallURL: s.UnpaywallURL,
		Contact: contact, AllowPrivate: s.FetchAllowPrivate, Dir: scratch, Log: h.log,
	})
	limits := ai.DefaultLimits()
	limits.PerOwner = s.AnalysesPerDay
	limits.FailedPerOwner = max(limits.FailedPerOwner, s.AnalysesPerDay)
	o := ai.Options{
		Store: h.db, Queue: h.db, Use: h.db, Failed: h.db, Library: library, PDFs: library, Limits: limits,
		Worker: rand.Text(), Alone: s.Embedded(), Log: h.log, Now: h.db.Now,
	}
	chat := &ai.Chat{Store: h.db, Limits: ai.ChatLimits{PerUser: s.ChatPerDay, All: s.ChatDailyQuota}, Log: h.log, Now: h.db.Now}
	if s.AIBaseURL != "" {
		model := llm.New(llm.Options{BaseURL: s.AIBaseURL, Model: s.AIModel, Key: s.AIAPIKey, Log: h.log})
		o.Model, chat.Model = model, model
	}
	h.ai = ai.NewService(o)
	return chat, scratch, nil
}

// toolLimits are what pdftotext may use: a paper takes a second or two of it.
var toolLimits = tool.Limits{CPU: 20 * time.Second, Time: 30 * time.Second, Memory: 512 << 20, Disk: 20 << 20, Output: papers.LargestText}

// buildTools makes what runs programs on strangers' files, some at once: a
// driver like that of tasks, with a folder and room of its own, so that a task
// never waits for a paper nor a paper for a task.
func (h *application) buildTools(s *settings, atOnce int) error {
	folder, err := filepath.Abs(filepath.Join(s.Data, "tools"))
	if err != nil {
		return err
	}
	h.tools = tool.New(local.Config{
		Folder: folder, Log: h.log, Now: time.Now, Sandbox: local.Sandbox(s.Sandbox),
		VCPU: float64(atOnce), MemoryBytes: int64(atOnce) * toolLimits.Memory,
	}, toolLimits)
	return nil
}

// scratchLife is longer than anybody needs a PDF: an upload has a minute to
// arrive, and reading one a few.
const scratchLife = 15 * time.Minute

// emptyScratch makes the folder, and clears away what a server that was killed
// left in it. What is new may belong to a neighbour who shares the folder.
func emptyScratch(dir string, life time.Duration) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > life {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
