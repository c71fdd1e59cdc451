package mail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
)

// message is the mail in the mail's own format. Long links stay in one
// piece: the text is sent as it is, never folded.
func message(l mails.Message, from string, now time.Time) (*gomail.Msg, error) {
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
	m.SetBodyString(gomail.TypeTextPlain, l.Text)
	return m, nil
}

// Folder keeps mails as .eml files, for a server without a mail server.
type Folder struct {
	dir  string
	from string
	now  func() time.Time
}

// unfinished begins the names of mails that are being written.
const unfinished = ".letter-"

// NewFolder makes the folder if needed, and clears away what was being written
// when the power went: such a mail is still in the outbox.
func NewFolder(dir, from string, now func() time.Time) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, from: from, now: now}
	return f, f.remove(func(name string) bool { return strings.HasPrefix(name, unfinished) })
}

// Send writes the mail under a temporary name and renames it, so that a
// reader never sees half of one.
func (f *Folder) Send(_ context.Context, l mails.Message) error {
	now := f.now().UTC()
	m, err := message(l, f.from, now)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, unfinished+"*")
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
	name := now.Format("20060102T150405.000000") + "-" + l.ID
	if l.Team != "" {
		name += teamMark + string(l.Team)
	}
	return os.Rename(tmp.Name(), filepath.Join(f.dir, name+ending))
}

// The name of a mail's file ends in the team that it tells of.
const (
	teamMark = "-of-"
	ending   = ".eml"
)

// Teams are those that mails here tell of.
func (f *Folder) Teams(context.Context) ([]ids.Team, error) {
	entries, err := os.ReadDir(f.dir)
	teams := map[ids.Team]bool{}
	for _, e := range entries {
		if _, team, ok := strings.Cut(strings.TrimSuffix(e.Name(), ending), teamMark); ok {
			teams[ids.Team(team)] = true
		}
	}
	return slices.Collect(maps.Keys(teams)), err
}

// Forget removes the mails that tell of a team.
func (f *Folder) Forget(_ context.Context, team ids.Team) error {
	return f.remove(func(name string) bool { return strings.HasSuffix(name, teamMark+string(team)+ending) })
}

func (f *Folder) remove(chosen func(name string) bool) error {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if !chosen(e.Name()) {
			continue
		}
		if gone := os.Remove(filepath.Join(f.dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// SMTP hands mails to a mail server.
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

// Send sends the mail.
func (s *SMTP) Send(ctx context.Context, l mails.Message) error {
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
