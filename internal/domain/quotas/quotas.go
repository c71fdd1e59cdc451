// Package quotas is what a team may use, whether or not anything costs money:
// executors, the cluster's accounts, storage, and vCPU hours of a month.
package quotas

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Exhausted is the code of a refusal because a quota leaves too little.
const Exhausted = "quota_exhausted"

// Limit is the most that may be used; Unlimited is no limit.
type Limit int64

// Unlimited is no limit.
const Unlimited Limit = -1

// Left is what the limit leaves of a use.
func (l Limit) Left(used int64) int64 {
	if l == Unlimited {
		return math.MaxInt64
	}
	return max(0, int64(l)-used)
}

// In is the limit in a larger unit, or nil where there is none.
func (l Limit) In(unit int64) *float64 {
	if l == Unlimited {
		return nil
	}
	n := float64(l) / float64(unit)
	return &n
}

// Quotas are what a team may use.
type Quotas struct {
	Executors []string // by name; nil: all
	Slurm     Slurm
	Storage   Limit // bytes
	Team      Limit // vCPU-seconds of all in a calendar month
	Person    Limit // vCPU-seconds of each person in a calendar month
}

// None are no quotas.
func None() Quotas { return Quotas{Storage: Unlimited, Team: Unlimited, Person: Unlimited} }

// Slurm is how a team's jobs are accounted for; what is empty is the executor's own.
type Slurm struct {
	Account string
	QOS     string
	WCKey   string
}

// Allows reports whether a team may use an executor.
func Allows(executors []string, name string) bool {
	return executors == nil || slices.Contains(executors, name)
}

// Use is what was used of the vCPU hours in this month, in vCPU-seconds.
type Use struct {
	Used int64
	Held int64 // for runs that have not ended
}

// Sum is all that counts.
func (u Use) Sum() int64 { return u.Used + u.Held }

// Hours are vCPU-seconds as hours, for people: at most two decimals.
func Hours(seconds int64) string {
	return strconv.FormatFloat(math.Round(float64(seconds)/36)/100, 'f', -1, 64)
}

// Hour is a vCPU hour in vCPU-seconds.
const Hour = 3600

// HoursOf are vCPU-seconds as hours.
func HoursOf(seconds int64) float64 { return float64(seconds) / Hour }

// SpentHours is the refusal by a quota of vCPU hours: of whom it is, such as "the
// team's", with what counts against it.
func SpentHours(whose string, l Limit, u Use, now time.Time) error {
	_, end := credits.Period(now)
	return fault.Payment("%s quota of vCPU hours for this month is used: %s of %s hours are used or held for runs. It renews on %s at 00:00 UTC; an operator of the installation can raise it",
		whose, Hours(u.Sum()), Hours(int64(l)), end.Format("2 January 2006")).WithCode(Exhausted)
}

// SpentStorage is the refusal by a quota of storage.
func SpentStorage(l Limit, used int64) error {
	return fault.Payment("this does not fit into the team's storage quota: %s of %s GB are used. It does not renew: delete files, runs or workflows, or ask an operator of the installation to raise it",
		gigabytes(used), gigabytes(int64(l))).WithCode(Exhausted)
}

func gigabytes(n int64) string {
	return strconv.FormatFloat(math.Round(float64(n)*100/float64(credits.GB))/100, 'f', -1, 64)
}

// The largest limits: no sum of them overflows.
const (
	MostGB    = 1 << 30
	MostHours = 1_000_000_000
)

// FromHours is a limit of so many vCPU hours.
func FromHours(hours float64) (Limit, error) {
	if !(hours >= 0 && hours <= MostHours) { // nor is it NaN
		return 0, fmt.Errorf("must be from 0 to %d hours, or null for no limit", MostHours)
	}
	return Limit(math.Round(hours * Hour)), nil
}

// FromGB is a limit of so many GB.
func FromGB(gb float64) (Limit, error) {
	if !(gb >= 0 && gb <= MostGB) {
		return 0, fmt.Errorf("must be from 0 to %d GB, or null for no limit", MostGB)
	}
	return Limit(math.Round(gb * float64(credits.GB))), nil
}

// Edit changes some quotas; what is nil stays.
type Edit struct {
	Executors *[]string // of nil: all
	Account   *string   // empty: none
	QOS       *string
	WCKey     *string
	Storage   *Limit
	Team      *Limit
	Person    *Limit
}

// Empty reports whether nothing changes.
func (e Edit) Empty() bool { return e == Edit{} }

// Apply is the quotas as they are after the change.
func (e Edit) Apply(q Quotas) Quotas {
	set(&q.Executors, e.Executors)
	set(&q.Slurm.Account, e.Account)
	set(&q.Slurm.QOS, e.QOS)
	set(&q.Slurm.WCKey, e.WCKey)
	set(&q.Storage, e.Storage)
	set(&q.Team, e.Team)
	set(&q.Person, e.Person)
	return q
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// MostExecutors is how many a team's list has at most.
const MostExecutors = 50

// ExecutorName is what executors are called.
var ExecutorName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// slurmName is a name that is safe as the value of an option of sbatch: it is no
// option, no list, and nothing that a shell or Slurm would replace.
var slurmName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// SlurmName reports whether something may be the name of an account, a QOS or a wckey.
func SlurmName(name string) bool { return slurmName.MatchString(name) }

// Problems are all that is wrong with a change.
func (e Edit) Problems() (wrong []fault.Detail) {
	note := func(path, message string) {
		wrong = append(wrong, fault.Detail{Path: path, Message: message})
	}
	if e.Executors != nil && *e.Executors != nil {
		list := *e.Executors
		switch {
		case len(list) == 0:
			note("executors", "names at least one executor; null allows all of them")
		case len(list) > MostExecutors:
			note("executors", fmt.Sprintf("takes at most %d names", MostExecutors))
			return wrong
		}
		for i, name := range list {
			switch path := fmt.Sprintf("executors[%d]", i); {
			case !ExecutorName.MatchString(name):
				note(path, "must be the name of an executor: 1 to 32 lower-case letters, digits and hyphens, the first a letter")
			case slices.Contains(list[:i], name):
				note(path, "is in the list already")
			}
		}
	}
	for _, n := range []struct {
		path string
		name *string
	}{{"slurm.account", e.Account}, {"slurm.qos", e.QOS}, {"slurm.wckey", e.WCKey}} {
		if n.name != nil && *n.name != "" && !SlurmName(*n.name) {
			note(n.path, "must be one name of 1 to 64 letters, digits and any of _ . -, the first a letter, a digit or _")
		}
	}
	return wrong
}

// String says what a change does, for a record.
func (e Edit) String() string {
	var parts []string
	add := func(name, value string) { parts = append(parts, name+"="+value) }
	if e.Executors != nil {
		add("executors", cmp.Or(strings.Join(*e.Executors, ","), "all"))
	}
	for _, n := range []struct {
		name  string
		value *string
	}{{"slurm-account", e.Account}, {"slurm-qos", e.QOS}, {"slurm-wckey", e.WCKey}} {
		if n.value != nil {
			add(n.name, cmp.Or(*n.value, "none"))
		}
	}
	for _, l := range []struct {
		name  string
		value *Limit
		text  func(int64) string
	}{{"storage-gb", e.Storage, gigabytes}, {"monthly-vcpu-hours", e.Team, Hours}, {"per-person-vcpu-hours", e.Person, Hours}} {
		switch {
		case l.value == nil:
		case *l.value == Unlimited:
			add(l.name, "none")
		default:
			add(l.name, l.text(int64(*l.value)))
		}
	}
	return strings.Join(parts, " ")
}
