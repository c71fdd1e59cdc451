package mail

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
)

var sample = mails.Message{
	ID: "inv_1.a", To: "bob@example.org", Subject: "Ada invites you · Żółw",
	Text: "Hello,\n\nhttp://127.0.0.1:8080/invitations/" + strings.Repeat("x", 90) + "?a=b\n",
}

func TestALetterInTheFolderKeepsItsLinkInOnePiece(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mail")
	f, err := NewFolder(dir, "Millrace <millrace@localhost>", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], ".eml") {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"To: <bob@example.org>", "Subject: ", strings.Split(sample.Text, "\n")[2]} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestTheFolderForgetsATeamAndWhatWasNeverFinished(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".letter-1"), []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(dir, "Millrace <millrace@localhost>", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, team := range []ids.Team{"", "team_a", "team_ab", "team_a"} {
		l := sample
		l.Team = team
		if err := f.Send(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if teams, err := f.Teams(t.Context()); err != nil || len(teams) != 2 {
		t.Errorf("%v, %v", teams, err)
	}
	if err := f.Forget(t.Context(), "team_a"); err != nil {
		t.Fatal(err)
	}
	if teams, err := f.Teams(t.Context()); err != nil || len(teams) != 1 || teams[0] != "team_ab" {
		t.Errorf("%v, %v", teams, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// mailbox is a real SMTP server on loopback that keeps what it is sent, and
// refuses recipients while refuse is set.
type mailbox struct {
	mu     sync.Mutex
	got    []string
	refuse bool
}

func (b *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return b, nil }
func (b *mailbox) Mail(string, *smtp.MailOptions) error        { return nil }
func (b *mailbox) Reset()                                      {}
func (b *mailbox) Logout() error                               { return nil }

func (b *mailbox) Rcpt(string, *smtp.RcptOptions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse {
		return errors.New("come back later")
	}
	return nil
}

func (b *mailbox) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, string(text))
	return err
}

func (b *mailbox) serve(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := smtp.NewServer(b)
	s.Domain = "localhost"
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return "smtp://" + l.Addr().String() + "?from=millrace@example.org"
}

// drawer is an outbox in memory.
type drawer struct {
	waiting []mails.Message
	failed  []string
	sent    []string
}

func (d *drawer) ClaimMails(context.Context, int, time.Time, time.Duration) ([]mails.Message, error) {
	taken := d.waiting
	d.waiting = nil
	return taken, nil
}

func (d *drawer) ReleaseMails(context.Context, time.Time) error { return nil }

func (d *drawer) MailSent(_ context.Context, id string) error {
	d.sent = append(d.sent, id)
	return nil
}

func (d *drawer) MailFailed(_ context.Context, _, why string) error {
	d.failed = append(d.failed, why)
	return nil
}

func TestALetterThatIsRefusedStaysInTheOutbox(t *testing.T) {
	box := &mailbox{refuse: true}
	transport, err := NewSMTP(box.serve(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := &drawer{waiting: []mails.Message{sample}}
	p := NewSender(d, transport, slog.New(slog.DiscardHandler), time.Now)
	p.SendNow(t.Context())
	if len(d.failed) != 1 || len(d.sent) != 0 {
		t.Fatalf("failed %v, sent %v", d.failed, d.sent)
	}
	box.refuse = false
	d.waiting = []mails.Message{sample}
	p.SendNow(t.Context())
	if len(d.sent) != 1 || len(box.got) != 1 || !strings.Contains(box.got[0], strings.Repeat("x", 90)+"?a=b") {
		t.Errorf("sent %v, got %q", d.sent, box.got)
	}
}

func TestAVoidLetterIsThrownAwayLikeOneThatWasSent(t *testing.T) {
	void := sample
	void.Void = true
	dir := t.TempDir()
	f, err := NewFolder(dir, "Millrace <millrace@localhost>", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := &drawer{waiting: []mails.Message{void}}
	NewSender(d, f, slog.New(slog.DiscardHandler), time.Now).SendNow(t.Context())
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 || len(d.sent) != 1 || len(d.failed) != 0 {
		t.Errorf("sent %v, failed %v, in the folder %v, %v", d.sent, d.failed, left, err)
	}
}

func TestMailAboutAPageEndsWithItsLink(t *testing.T) {
	about := sample
	about.Path = "/billing?team=team_a"
	dir := t.TempDir()
	f, err := NewFolder(dir, "Millrace <millrace@localhost>", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p := NewSender(&drawer{waiting: []mails.Message{about}}, f, slog.New(slog.DiscardHandler), time.Now)
	p.Base = "https://lab.example"
	p.SendNow(t.Context())
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if plain := strings.ReplaceAll(string(text), "=3D", "="); !strings.Contains(plain, "https://lab.example/billing?team=team_a") {
		t.Errorf("%s", plain)
	}
}

// signalled is an outbox that says when it is looked into.
type signalled struct {
	drawer
	looked chan struct{}
}

func (s *signalled) ClaimMails(ctx context.Context, _ int, _ time.Time, _ time.Duration) ([]mails.Message, error) {
	select {
	case s.looked <- struct{}{}:
	case <-ctx.Done():
	}
	return nil, nil
}

func TestWakingThePostmanWaitsForNothing(t *testing.T) {
	box := &signalled{looked: make(chan struct{})}
	p := NewSender(box, nil, slog.New(slog.DiscardHandler), time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	<-box.looked
	for range 3 { // nobody is looking by now
		p.SendSoon()
	}
	<-box.looked
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestABadSMTPAddressIsExplained(t *testing.T) {
	for _, address := range []string{"", "mail.example.org", "http://mail.example.org", "smtp://mail.example.org", "smtp://host:99999999999999999999?from=a@b.c"} {
		if _, err := NewSMTP(address, time.Now); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}
