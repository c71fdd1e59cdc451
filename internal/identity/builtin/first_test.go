package builtin_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

func (b *bench) operates(id ids.User) bool {
	b.t.Helper()
	yes, err := b.db.IsOperator(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return yes
}

func (b *bench) firstToken() string {
	b.t.Helper()
	link, err := b.Accounts.FirstLink(b.t.Context(), "http://a")
	if err != nil {
		b.t.Fatal(err)
	}
	token, found := strings.CutPrefix(link, "http://a/sign-up?first=")
	if !found && link != "" {
		b.t.Fatal(link)
	}
	return token
}

func newcomer(name string) builtin.SignUp {
	return builtin.SignUp{Email: name + "@example.org", Password: password, Name: name}
}

var direct = builtin.Visit{Origin: "http://a", ClientPrefix: "127.0.0.1", Direct: true}

func TestTheFirstAccountFromThisMachineOperates(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ada, err := b.Accounts.SignUp(t.Context(), newcomer("ada"), direct)
		if err != nil || !b.operates(ada.User.ID) {
			t.Fatalf("the first account does not operate: %v", err)
		}
		bob, err := b.Accounts.SignUp(t.Context(), newcomer("bob"), direct)
		if err != nil || b.operates(bob.User.ID) {
			t.Errorf("the second account operates, or %v", err)
		}
	})
}

// Whoever comes from elsewhere without the link is nobody special, and nobody after them is.
func TestTheFirstAccountFromElsewhereDoesNotOperate(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		token := b.firstToken()
		if ada := b.signUp("ada"); b.operates(ada.User.ID) {
			t.Error("an account from elsewhere operates")
		}
		bob, err := b.Accounts.SignUp(t.Context(), newcomer("bob"), direct)
		if err != nil || b.operates(bob.User.ID) {
			t.Errorf("a later account operates, or %v", err)
		}
		if again := b.firstToken(); again != "" {
			t.Error("there is a link for the first account although there are accounts")
		}
		late := newcomer("eve")
		late.FirstToken = token
		_, err = b.Accounts.SignUp(t.Context(), late, direct)
		storetest.Refused(t, "the link, too late", err, fault.KindForbidden)
	})
}

func TestTheLinkAdmitsTheFirstAccountWhereverSignUpIsClosed(t *testing.T) {
	for _, policy := range []builtin.SignUpPolicy{builtin.SignUpOpen, builtin.SignUpInvite, builtin.SignUpClosed} {
		t.Run(string(policy), func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				ctx := t.Context()
				b.options.SignUp = policy
				b.System = builtin.New(b.options)
				token := b.firstToken()
				b.System = builtin.New(b.options)
				if token == "" || b.firstToken() != token {
					t.Error("the link of another server, or after a start, is another one")
				}
				for _, wrong := range []string{"x", token[1:], token + "0", strings.ToUpper(token) + " "} {
					in := newcomer("eve")
					in.FirstToken = wrong
					_, err := b.Accounts.SignUp(ctx, in, direct)
					storetest.Refused(t, wrong, err, fault.KindForbidden)
				}
				in := newcomer("ada")
				in.FirstToken = token
				in.Password = "short"
				_, err := b.Accounts.SignUp(ctx, in, visit)
				storetest.Refused(t, "a password that is too short", err, fault.KindInvalid)
				in.Password = password
				ada, err := b.Accounts.SignUp(ctx, in, visit)
				if err != nil || !b.operates(ada.User.ID) {
					t.Fatalf("the link does not admit the first account: %v", err)
				}
				in.Email = "bob@example.org"
				_, err = b.Accounts.SignUp(ctx, in, visit)
				storetest.Refused(t, "the link, again", err, fault.KindForbidden)
			})
		})
	}
}

// Accounts that the operator of the machine makes count as accounts.
func TestAnAccountOfTheCommandLineIsTheFirst(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		if _, err := b.Accounts.Create(t.Context(), newcomer("ada")); err != nil {
			t.Fatal(err)
		}
		bob, err := b.Accounts.SignUp(t.Context(), newcomer("bob"), direct)
		if err != nil || b.operates(bob.User.ID) {
			t.Errorf("a later account operates, or %v", err)
		}
	})
}

func TestOfTwoFirstAccountsAtOnceOneOperates(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		token := b.firstToken()
		var all sync.WaitGroup
		var mu sync.Mutex
		operators, refused := 0, 0
		for i, name := range []string{"ada", "bob", "eve", "mia"} {
			in := newcomer(name)
			if i%2 == 0 {
				in.FirstToken = token
			}
			all.Go(func() {
				made, err := b.Accounts.SignUp(t.Context(), in, direct)
				mu.Lock()
				defer mu.Unlock()
				if fault.Is(err, fault.KindForbidden) && in.FirstToken != "" {
					refused++
				} else if err != nil {
					t.Error(err)
				} else if b.operates(made.User.ID) {
					operators++
				}
			})
		}
		all.Wait()
		if operators != 1 {
			t.Errorf("%d of them operate, %d were refused", operators, refused)
		}
	})
}
