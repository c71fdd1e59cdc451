package sharing

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// passLife is how long a room token opens the door.
const passLife = time.Hour

// Pass is what a room token says: who may enter which room, and as what.
type Pass struct {
	Team     ids.Team     `json:"team"`
	Workflow ids.Workflow `json:"workflow"`
	Role     Role         `json:"role"`
	User     ids.User     `json:"user,omitempty"`    // a member
	Session  ids.Session  `json:"session,omitempty"` // of the member
	Guest    string       `json:"guest,omitempty"`
	Invite   ids.Invite   `json:"invite,omitempty"`  // of the guest
	Secrets  bool         `json:"secrets,omitempty"` // a guest who may change what is done with secrets
	Name     string       `json:"name"`
	Color    string       `json:"color"`
	Epoch    int64        `json:"epoch"` // of the document
	Expires  int64        `json:"exp"`   // seconds since 1970
}

// Room is the name of a workflow's editor room.
func (p Pass) Room() string { return string(p.Team) + "_" + string(p.Workflow) }

// ExpiresAt is when the pass stops opening the door.
func (p Pass) ExpiresAt() time.Time { return time.Unix(p.Expires, 0).UTC() }

// Guarded reports whether the holder may not change what is done with secrets.
func (p Pass) Guarded() bool { return p.Guest != "" && !p.Secrets }

// Subject names who holds the pass.
func (p Pass) Subject() string {
	if p.Guest != "" {
		return p.Guest
	}
	return string(p.User)
}

// MemberPass lets a member of the team into a workflow's room.
func (s *Service) MemberPass(ctx context.Context, caller access.Caller, session ids.Session, id ids.Workflow) (Pass, error) {
	if err := caller.Must(access.Read); err != nil {
		return Pass{}, err
	}
	p := Pass{
		Team: caller.Team, Workflow: id, Role: roomRole(caller), User: caller.User, Session: session,
		Name: caller.Name, Color: Color(string(caller.User)),
	}
	return s.dated(ctx, p)
}

// roomRole is what a caller may do in the editor; a token's scopes narrow it.
func roomRole(c access.Caller) Role {
	if c.May(access.EditWorkflows) {
		return Editor
	}
	return Viewer
}

// inRoom is what a member's role comes to in the editor.
func inRoom(r access.Role) Role {
	if r.May(access.EditWorkflows) {
		return Editor
	}
	return Viewer
}

// GuestPass lets a guest into the one room there is for them.
func (s *Service) GuestPass(ctx context.Context, j Joined) (Pass, error) {
	return s.dated(ctx, Pass{
		Secrets: j.Invite.AllowSecrets, Team: j.Invite.Team, Workflow: j.Invite.Workflow, Role: j.Invite.Role, User: j.Invite.CreatedBy,
		Guest: j.Guest.ID, Invite: j.Invite.ID, Name: j.Guest.Name, Color: Color(j.Guest.ID),
	})
}

func (s *Service) dated(ctx context.Context, p Pass) (Pass, error) {
	epoch, readOnly, err := s.Rooms.Epoch(ctx, p.Team, p.Workflow)
	if p.Epoch = epoch; readOnly {
		p.Role = Viewer
	}
	p.Expires = s.Now().Add(passLife).Unix()
	return p, err
}

// Sign makes a pass a room token.
func (s *Service) Sign(p Pass) (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + s.passMAC(body), nil
}

func (s *Service) passMAC(body string) string {
	return base64.RawURLEncoding.EncodeToString(s.mac("room " + body))
}

// Verify is the pass that a room token was made of, if we made it and it has
// not expired.
func (s *Service) Verify(token string) (Pass, error) {
	var p Pass
	body, signature, _ := strings.Cut(token, ".")
	if !hmac.Equal([]byte(signature), []byte(s.passMAC(body))) {
		return p, errPass()
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &p) != nil || !s.Now().Before(p.ExpiresAt()) {
		return p, errPass()
	}
	return p, nil
}

func errPass() error {
	return fault.Unauthenticated("the room token is missing, invalid or expired: get another one").WithCode("invalid_token")
}

// Lost lists those of the passes whose holders may no longer be in the room as
// what they are: signed out, removed, of a lesser role, or by a link that has
// ended.
func (s *Service) Lost(ctx context.Context, passes []Pass) ([]Pass, error) {
	var links []ids.Invite
	for _, p := range passes {
		if p.Invite != "" {
			links = append(links, p.Invite)
		}
	}
	open, err := s.Rooms.OpenInvites(ctx, links, s.Now())
	if err != nil {
		return nil, err
	}
	type place struct {
		session ids.Session
		team    ids.Team
	}
	roles := map[place]Role{} // empty: none
	var lost []Pass
	for _, p := range passes {
		if p.Invite != "" {
			if !open[p.Invite] {
				lost = append(lost, p)
			}
			continue
		}
		at := place{p.Session, p.Team}
		role, asked := roles[at]
		if !asked {
			r, err := s.Members.RoleOf(ctx, p.Session, p.Team)
			switch {
			case err == nil:
				role = inRoom(r)
			case !fault.Is(err, fault.KindUnauthenticated) && !fault.Is(err, fault.KindNotFound):
				return nil, err
			}
			roles[at] = role
		}
		if role == "" || p.Role == Editor && role != Editor {
			lost = append(lost, p)
		}
	}
	return lost, nil
}

// palette are colours that white text can be read on.
var palette = []string{"#2f6f5e", "#8a4b08", "#3b5bdb", "#9c36b5", "#c2255c", "#0b7285", "#5c6b00", "#a61e4d", "#1864ab", "#6741d9", "#7c4a1e", "#2b8a3e"}

// Color is somebody's own, always the same.
func Color(subject string) string {
	h := fnv.New32a()
	h.Write([]byte(subject))
	return palette[h.Sum32()%uint32(len(palette))]
}
