package secrets_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// bench is the room on a real database, with a team.
type bench struct {
	*secrets.Service
	t     *testing.T
	db    *store.DB
	owner access.Caller
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		test(t, &bench{secrets.NewService(db, storetest.NewClock().Now), t, db, storetest.Owner(t, db, "ada")})
	})
}

func (b *bench) put(name, value string) secrets.Secret {
	b.t.Helper()
	s, err := b.Put(b.t.Context(), b.owner, name, value)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestWhatIsWrongWithASecretIsSaid(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for name, tt := range map[string]struct{ name, value, path string }{
			"too short to be masked": {"OK", "seven b", "value"},
			"too long":               {"OK", strings.Repeat("x", 64<<10+1), "value"},
			"a NUL":                  {"OK", "nul \x00 nul", "value"},
			"no UTF-8":               {"OK", "bytes \xff\xfe", "value"},
			"a digit first":          {"1ST", "long enough", "name"},
			"a dash":                 {"A-B", "long enough", "name"},
			"a name of 64":           {strings.Repeat("N", 64), "long enough", "name"},
			"no name":                {"", "long enough", "name"},
		} {
			_, err := b.Put(t.Context(), b.owner, tt.name, tt.value)
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.KindInvalid || len(e.Details) != 1 || e.Details[0].Path != tt.path {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.put("OK", strings.Repeat("x", 64<<10))
		b.put(strings.Repeat("N", 63), "8 bytes!")
	})
}

func TestATeamKeepsAHundredAndChangesThem(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i := range secrets.MaxSecrets {
			b.put(fmt.Sprintf("S%d", i), "long enough")
		}
		_, err := b.Put(t.Context(), b.owner, "ONE_MORE", "long enough")
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "too_many_secrets" {
			t.Error(err)
		}
		if s := b.put("S7", "another value"); s.Version != 2 {
			t.Errorf("one that is there: %+v", s)
		}
		storetest.Refused(t, "deleting one", b.Delete(t.Context(), b.owner, "S7"), "")
		if s := b.put("ONE_MORE", "long enough"); s.Version != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAHintSaysLittle(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for value, want := range map[string]string{"ghp_0123456789abcdefWXYZ": "WXYZ", "nineteen characters": "", "twenty letters, so öä\n": "o öä"} {
			if s := b.put("TOKEN", value); s.Hint != want {
				t.Errorf("%q has the hint %q, want %q", value, s.Hint, want)
			}
		}
	})
}

func TestWhoUsesAndWhoManagesSecrets(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.put("TOKEN", "long enough")
		for role, may := range map[access.Role]struct{ list, manage fault.Kind }{
			access.Owner: {"", ""}, access.Admin: {"", ""}, access.Member: {"", fault.KindForbidden},
			access.Viewer: {fault.KindForbidden, fault.KindForbidden}, access.GuestEditor: {fault.KindForbidden, fault.KindForbidden},
		} {
			as := b.owner
			as.Role = role
			_, err := b.Secrets(t.Context(), as)
			storetest.Refused(t, string(role)+" lists them", err, may.list)
			_, err = b.Put(t.Context(), as, "TOKEN", "another one")
			storetest.Refused(t, string(role)+" sets one", err, may.manage)
			if may.manage != "" {
				storetest.Refused(t, string(role)+" deletes one", b.Delete(t.Context(), as, "TOKEN"), may.manage)
			}
		}
		stranger := storetest.Owner(t, b.db, "mia")
		if list, err := b.Secrets(t.Context(), stranger); err != nil || len(list) != 0 {
			t.Errorf("another team sees %v, %v", list, err)
		}
		storetest.Refused(t, "another team deletes it", b.Delete(t.Context(), stranger, "TOKEN"), fault.KindNotFound)
	})
}
