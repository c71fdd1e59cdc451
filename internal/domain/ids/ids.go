// Package ids gives each kind of thing its own kind of name, so that a run can
// never be looked up by a workflow's. Ids are opaque, carry a type prefix and
// sort by creation.
package ids

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The kinds of names.
type (
	User       string
	Team       string
	Session    string
	Invitation string
	Invite     string // a share link
	Workflow   string
	Run        string
	Analysis   string
	Sweep      string // runs that were started together
	ResultLink string
	Connection string // to data elsewhere
	Schedule   string
	Webhook    string
	Trigger    string // a secret address that starts runs
)

// The makers, one per kind.
func NewUser() User             { return User(made("user_")) }
func NewTeam() Team             { return Team(made("team_")) }
func NewSession() Session       { return Session(made("sess_")) }
func NewInvitation() Invitation { return Invitation(made("inv_")) }
func NewInvite() Invite         { return Invite(made("inv_")) }
func NewWorkflow() Workflow     { return Workflow(made("wf_")) }
func NewRun() Run               { return Run(made("run_")) }
func NewAnalysis() Analysis     { return Analysis(made("an_")) }
func NewSweep() Sweep           { return Sweep(made("swp_")) }
func NewResultLink() ResultLink { return ResultLink(made("lnk_")) }
func NewConnection() Connection { return Connection(made("conn_")) }
func NewSchedule() Schedule     { return Schedule(made("sch_")) }
func NewWebhook() Webhook       { return Webhook(made("whk_")) }
func NewTrigger() Trigger       { return Trigger(made("trg_")) }

// Proper reports whether this names a session, and not a grant in its place.
func (s Session) Proper() bool { return strings.HasPrefix(string(s), "sess_") }

// Names of things that nobody looks up by mistake.
func NewEntry() string   { return made("le_") } // of a ledger
func NewOrder() string   { return made("ord_") }
func NewBudget() string  { return made("bud_") }
func NewFile() string    { return made("file_") }
func NewUpload() string  { return made("up_") }
func NewGuest() string   { return made("guest_") }
func NewInvoice() string { return made("in_") }
func NewReading() string { return made("rd_") }  // of a paper
func NewMessage() string { return made("msg_") } // to a webhook
func NewMail() string    { return made("mail_") }

func NewFilter() string       { return made("flt_") }
func NewFailure() string      { return made("fail_") } // of a request
func NewNotification() string { return made("ntf_") }
func NewNotice() string       { return made("notice_") } // of the operators

func NewGrant() string       { return made("grant_") } // what a person gave a program
func NewAccessToken() string { return made("tok_") }

// FirstRun sorts before every run that is made from a time on, and after those made
// before it, to the millisecond.
func FirstRun(at time.Time) Run {
	const last = 1<<48 - 1 // that fits into an id
	return Run(fmt.Sprintf("run_%012x7%019d", min(max(at.UnixMilli(), 0), last), 0))
}

// made is the prefix and a version 7 UUID in hex: the first half is the time,
// so that newer ids sort after older ones and index well.
func made(prefix string) string {
	id := uuid.Must(uuid.NewV7()) // fails only when the system has no randomness
	return prefix + hex.EncodeToString(id[:])
}
