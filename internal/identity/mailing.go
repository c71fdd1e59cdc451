package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
)

// Counter counts across all servers and restarts.
type Counter interface {
	// TakeHits counts one more by every rule, or by none if one is used up.
	TakeHits(ctx context.Context, rules []limits.Rule, now time.Time) ([]limits.Result, error)
}

// Count takes one more by every rule, or says when it is worth trying again.
func Count(ctx context.Context, c Counter, rules []limits.Rule, now time.Time, report limits.Report) error {
	standings, err := c.TakeHits(ctx, rules, now)
	if err != nil {
		return err
	}
	var refused *fault.Error
	for i, s := range standings {
		if report != nil && rules[i].Name != "" {
			report(rules[i], s)
		}
		if !s.Allowed && (refused == nil || s.Reset > refused.RetryAfter) {
			refused = fault.Limited(s.Reset, "%s", rules[i].Why)
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}

// Whoever could use our mail to bother others is counted: the account, the
// team, the address that it comes from, and the address that it goes to.
var (
	invitationsByAccount = limits.Window{Most: 50, Per: time.Hour}
	invitationsByTeam    = limits.Window{Most: 200, Per: 24 * time.Hour}
	invitationsToAddress = limits.Window{Most: 10, Per: 24 * time.Hour}
	linksByTeam          = limits.Window{Most: 1000, Per: 24 * time.Hour}
	mailFromAddress      = limits.Window{Most: 50, Per: time.Hour}
)

// Rules are what the invitation counts by. One that is not mailed bothers
// nobody, and is bounded only for the rows that it takes.
func (in NewInvitation) Rules(caller access.Caller, email string) []limits.Rule {
	rules := []limits.Rule{{
		Name: "invitations-made", Bucket: "invitations made " + hashed(string(caller.Team)), Window: linksByTeam,
		Why: "the team has created a thousand invitations within a day; try again tomorrow",
	}}
	if !in.Verified {
		return rules
	}
	return append(rules, InvitationMail(caller, email, in.ClientPrefix)...)
}

// InvitationMail is what the mail of an invitation counts by.
func InvitationMail(caller access.Caller, email, clientPrefix string) []limits.Rule {
	return append(MailFrom(clientPrefix),
		limits.Rule{
			Name: "invitations-account", Bucket: "invitations by " + string(caller.User), Window: invitationsByAccount,
			Why: "you have sent too many invitations within an hour; try again later",
		},
		limits.Rule{
			Name: "invitations-team", Bucket: "invitations of " + hashed(string(caller.Team)), Window: invitationsByTeam,
			Why: "the team has sent too many invitations within a day; try again tomorrow",
		},
		// Not told: it would say whether others wrote to this address.
		limits.Rule{
			Bucket: "invitations to " + hashed(email), Window: invitationsToAddress,
			Why: "this address was sent too many invitations within a day; try again tomorrow, or copy the link of one and send it yourself",
		})
}

// MailWait is how long the mail of an invitation waits at most where so many of the team wait
// before it.
func MailWait(before int) time.Duration {
	return time.Duration(before/invitationsByTeam.Most+1) * invitationsByTeam.Per
}

// MailFrom is what all mail that one address asks for counts by; no client prefix
// is not counted.
func MailFrom(clientPrefix string) []limits.Rule {
	if clientPrefix == "" {
		return nil
	}
	return []limits.Rule{{
		Name: "mail", Bucket: "letters " + clientPrefix, Window: mailFromAddress,
		Why: "too many emails were requested from your address; wait before you request more",
	}}
}

// hashed keeps addresses, and teams that are erased, out of what is counted.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
