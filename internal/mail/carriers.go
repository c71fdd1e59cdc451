package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/letters"
)

// teamHeader names the team that a letter tells of.
const teamHeader gomail.Header = "X-Millrace-Team"

// message is the letter in the mail's own format. Long links stay in one
// piece: the text is sent as it is, never folded.
func message(l letters.Letter, from string, now time.Time) (*gomail.Msg, error) {
	m := gomail.NewMsg(gomail.WithEncoding(gomail.NoEncoding), gomail.WithNoDefaultUserAgent())
	if err := m.From(from); err != nil {
		return nil, fmt.Errorf("the sender %q: %w", from, err)
	}
	if err := m.To(l.To); err != nil {
		return nil, fmt.Errorf("the recipient: %w", err)
	}
	m.Subject(l.Subject)
	m.SetDateWithValue(now)
	m.SetMessageIDWithValue(l.ID + "@millrace")
	if l.Team != "" {
		m.SetGenHeader(teamHeader, string(l.Team))
	}
	m.SetBodyString(gomail.TypeTextPlain, l.Text)
	return m, nil
}

// Folder keeps letters as .eml files, for a server without a mail server.
type Folder struct {
	dir  string
	from string
	now  func() time.Time
}

// NewFolder makes the folder if needed.
func NewFolder(dir, from string, now func() time.Time) (*Folder, error) {
	return &Folder{dir: dir, from: from, now: now}, os.MkdirAll(dir, 0o700)
}

// Carry writes the letter under a temporary name and renames it, so that a
// reader never sees half of one.
func (f *Folder) Carry(_ context.Context, l letters.Letter) error {
	now := f.now().UTC()
	m, err := message(l, f.from, now)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, ".letter-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = m.WriteTo(tmp); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(f.dir, now.Format("20060102T150405.000000")+"-"+l.ID+".eml"))
}

// Forget removes the letters that tell of a team.
func (f *Folder) Forget(ctx context.Context, team ids.Team) error {
	names, err := filepath.Glob(filepath.Join(f.dir, "*.eml"))
	if err != nil {
		return err
	}
	line := []byte("\r\n" + string(teamHeader) + ": " + string(team) + "\r\n")
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, line) {
			err = os.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SMTP hands letters to a mail server.
type SMTP struct {
	host string
	opts []gomail.Option
	from string
	now  func() time.Time
}

// NewSMTP reads an address such as
// smtp://user:password@host:587?from=millrace@example.org. smtps:// speaks TLS
// from the first byte; smtp:// turns it on where the server offers it, and
// with ?tls=required refuses to go on without.
func NewSMTP(address string, now func() time.Time) (*SMTP, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || (u.Scheme != "smtp" && u.Scheme != "smtps") {
		return nil, errors.New("the SMTP address is not of the form smtp://user:password@host:port?from=address")
	}
	s := &SMTP{host: u.Hostname(), from: u.Query().Get("from"), now: now}
	if s.from == "" {
		return nil, errors.New("the SMTP address needs ?from=, the sender of our mail")
	}
	s.opts = []gomail.Option{gomail.WithTimeout(patience), gomail.WithTLSPolicy(gomail.TLSOpportunistic)}
	if u.Query().Get("tls") == "required" {
		s.opts = append(s.opts, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if u.Scheme == "smtps" {
		s.opts = append(s.opts, gomail.WithSSLPort(false))
	}
	if p := u.Port(); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil {
			return nil, fmt.Errorf("the port of the SMTP address: %w", err)
		}
		s.opts = append(s.opts, gomail.WithPort(n))
	}
	if password, ok := u.User.Password(); ok {
		s.opts = append(s.opts, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	}
	return s, nil
}

// Carry sends the letter.
func (s *SMTP) Carry(ctx context.Context, l letters.Letter) error {
	m, err := message(l, s.from, s.now())
	if err != nil {
		return err
	}
	c, err := gomail.NewClient(s.host, s.opts...)
	if err != nil {
		return err
	}
	return c.DialAndSendWithContext(ctx, m)
}
