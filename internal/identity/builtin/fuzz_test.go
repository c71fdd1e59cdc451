package builtin_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// FuzzCredentials shows arbitrary text wherever a secret is asked for. Nothing
// but what we signed opens anything, and nothing fails but as a bad secret.
func FuzzCredentials(f *testing.F) {
	db := storetest.Open(f, storetest.SQLite(f))
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	s := builtin.New(builtin.Options{
		Stores: db.Identity(), Post: noPost{}, Passwords: builtin.NewPasswordsOfCost(64, 1), Origins: []string{"http://a"},
		SignUp: builtin.SignUpOpen, Private: true, FirstPlan: "free", Now: now,
	})
	if err := s.Keys.Rotate(f.Context()); err != nil {
		f.Fatal(err)
	}
	in, err := s.Accounts.SignUp(f.Context(), builtin.SignUp{Email: "ada@example.org", Password: "correct horse", Name: "Ada"}, builtin.Visit{Origin: "http://a"})
	if err != nil {
		f.Fatal(err)
	}
	token := strings.Split(in.Token.Text, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	for _, seed := range []string{
		"", ".", "..", in.Token.Text, none + "." + token[1] + ".", token[0] + "." + token[1] + ".", token[0] + ".e30." + token[2],
		"oat_", "oat_x", "ort_x", "mri_x", "\x00", strings.Repeat("a", 5000), "eyJhbGciOiJIUzI1NiJ9.e30.e30", in.Token.Text + ".x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := s.Identify(t.Context(), identity.Credential{Bearer: text, Cookie: text})
		switch {
		case err == nil && (p.User.ID != in.User.ID || !strings.HasPrefix(text, token[0]+"."+token[1]+".")):
			t.Errorf("%q is %s", text, p.User.ID)
		case err != nil && !fault.Is(err, fault.KindUnauthenticated):
			t.Errorf("%q: %v", text, err)
		}
		if _, err := s.Invitations.Find(t.Context(), text); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("an invitation by %q: %v", text, err)
		}
		for name, use := range map[string]error{
			"a reset": s.Recovery.ResetPassword(t.Context(), text, "another horse"), "an address": s.Recovery.Verify(t.Context(), text),
		} {
			if !fault.Is(use, fault.KindNotFound) {
				t.Errorf("%s by %q: %v", name, text, use)
			}
		}
	})
}
