package sharing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
)

// TokenPrefix begins every token of a link or a guest.
const TokenPrefix = "mri_"

// Joining is somebody at the door.
type Joining struct {
	TokenHash string
	Visitor   string // a hash of the browser's cookie
	Guest     Guest  // what a newcomer becomes; no name stays as it was, or is made up
	RunToken  func(guest string) (hash string)
	Now       time.Time
}

// Joined is a guest who was let in.
type Joined struct {
	Invite   Invite
	Guest    Guest
	RunToken string // an editor's own bearer token for starting runs
}

const maxGuestName = 100

// Join lets somebody in by a link's token. The same browser is one guest,
// however often it comes.
func (s *Service) Join(ctx context.Context, token, name, visitor string, newID func() string) (Joined, error) {
	name = strings.TrimSpace(name)
	if utf8.RuneCountInString(name) > maxGuestName || strings.ContainsFunc(name, unicode.IsControl) {
		d := fault.Detail{Path: "name", Message: "needs 1 to 100 characters in one line"}
		return Joined{}, fault.Problems([]fault.Detail{d}, "your %s %s", d.Path, d.Message)
	}
	now := s.Now()
	i, g, err := s.Store.Join(ctx, Joining{
		TokenHash: hashed(token), Visitor: hashed(visitor), Guest: Guest{ID: newID(), Name: name}, Now: now,
		RunToken: func(guest string) string { return hashed(s.runToken(guest)) },
	}, func(i Invite, back bool) error {
		if st := i.Status(now); st != Active && (st != Exhausted || !back) {
			return ended(st)
		}
		return nil
	})
	if err != nil {
		return Joined{}, err
	}
	j := Joined{Invite: i, Guest: g}
	if i.Role == Editor {
		j.RunToken = s.runToken(g.ID)
	}
	return j, nil
}

// ended says why a link does not open.
func ended(s Status) error {
	return fault.Forbidden("this link is %s: ask the person who sent it for a new one", s).WithCode(string(s))
}

// Caller is the guest that a link's token, or a guest's run token, speaks for.
// A token that nobody has, or that is revoked or expired, is
// fault.KindUnauthenticated.
func (s *Service) Caller(ctx context.Context, token string) (access.Caller, error) {
	i, g, err := s.Store.Bearer(ctx, hashed(token))
	if fault.Is(err, fault.KindNotFound) {
		return access.Caller{}, fault.Unauthenticated("there is no such share token: open the link again").WithCode("invalid_token")
	}
	if err != nil {
		return access.Caller{}, err
	}
	switch st := i.Status(s.Now()); {
	case st == Revoked || st == Expired:
		return access.Caller{}, fault.Unauthenticated("the link this token belongs to is %s", st).WithCode(string(st))
	case st == Exhausted && g == nil:
		return access.Caller{}, ended(st)
	}
	if g == nil { // the link's own token: whoever holds it
		g = &Guest{ID: string(i.ID), Name: "Guest"}
	}
	return i.caller(*g), nil
}

func (i Invite) caller(g Guest) access.Caller {
	role := access.GuestViewer
	if i.Role == Editor {
		role = access.GuestEditor
	}
	return access.Caller{Name: g.Name, Team: i.Team, Role: role, Guest: &access.Guest{ID: g.ID, Invite: i.ID, Workflow: i.Workflow, Secrets: i.AllowSecrets, Results: i.AllowResults}}
}

// Caller is the guest as one who asks.
func (j Joined) Caller() access.Caller { return j.Invite.caller(j.Guest) }

// runToken is a guest's own. It is derived, not drawn: a guest who comes back,
// or has two tabs open, has the same, and we keep only its hash.
func (s *Service) runToken(guest string) string {
	return TokenPrefix + base62(s.mac("run token "+guest))
}

// newSecret draws a token with a prefix that says what it is for.
func newSecret(prefix string) string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return prefix + base62(secret)
}

// base62 writes 32 bytes as 43 letters and digits.
func base62(b []byte) string {
	const length = 43
	text := new(big.Int).SetBytes(b).Text(62)
	return strings.Repeat("0", length-len(text)) + text
}

// hashed is how a secret is kept: enough to recognise it, useless to a thief.
func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func (s *Service) mac(text string) []byte {
	h := hmac.New(sha256.New, s.Key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Visitor is the browser that a cookie names, or a new one where the cookie is
// none of ours.
func (s *Service) Visitor(cookie string) (visitor string, isNew bool) {
	id, signature, _ := strings.Cut(cookie, ".")
	if id != "" && hmac.Equal([]byte(signature), []byte(s.visitorMAC(id))) {
		return cookie, false
	}
	id = strings.ToLower(rand.Text())
	return id + "." + s.visitorMAC(id), true
}

func (s *Service) visitorMAC(id string) string {
	return base64.RawURLEncoding.EncodeToString(s.mac("visitor " + id))
}
