package slurm

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// attempt is an attempt that was submitted and not released. The driver's lock
// guards it.
type attempt struct {
	about  about
	permit executor.Permit // of an attempt that was submitted to this driver; nil: to another server's
	folder job.Folder
	name   string // of its job
	sealed []byte

	phase    executor.Phase
	reason   executor.Reason
	detail   string
	node     string
	exit     *executor.Exit
	usage    *executor.Usage
	at       time.Time
	recorded bool // the job itself told how it ended

	control  job.Control
	renewed  time.Time
	stopAt   time.Time // when it was asked to end; zero if it was not
	stopSent time.Time // when Slurm was last told

	tries   int       // to submit it
	handed  time.Time // to Slurm; zero if this server has not
	receipt string    // the number of the job, for people
	inQueue bool      // waits to be handed over, or is being so
	claimed bool
	beats   int64
	heard   time.Time // when its job was last seen to live
	missing time.Time // since when Slurm says nothing of it, or that it has ended
	slurm   slurmJob  // what Slurm last said
	stuck   time.Time // since when Slurm says that it cannot start; zero while it does not
	asked   bool      // sacct was asked

	unexplained time.Time // since when Slurm has to say something about how its job ended
	notBegunAt  time.Time // when this server last saw that it had not begun; zero if it never did
	startedAt   time.Time // as this server saw it

	suspended []executor.Span // when Slurm had suspended its job, as this server saw it
}

func newAttempt(installation string, s executor.Spec, f job.Folder, now time.Time) *attempt {
	a := attemptOf(installation, aboutOf(s, now), f)
	a.at, a.notBegunAt = now, now
	if s.AbandonAfter > 0 {
		a.control.Until, a.renewed = now.Add(s.AbandonAfter), now
	}
	return a
}

// allow checks an order about an attempt against what other servers have written. The
// driver's lock is held.
func (a *attempt) allow(p executor.Permit) error {
	if written, err := a.folder.Control(); err == nil {
		a.control = merge(a.control, written)
	}
	last, err := executor.Allow(p, a.control.RunFence)
	a.control.RunFence = last
	return err
}

func attemptOf(installation string, known about, f job.Folder) *attempt {
	return &attempt{about: known, folder: f, name: jobName(installation, known), phase: executor.Pending, reason: executor.Starting, at: known.At}
}

// merge joins what two servers want of a job. What the later owner of the run wants
// counts. Of one owner a stop stays, with the shorter grace.
func merge(own, written job.Control) job.Control {
	switch {
	case own.RunFence < written.RunFence:
		return written
	case own.RunFence > written.RunFence && written.RunFence != 0: // else it is of an earlier release
		return own
	}
	both := written
	both.RunFence = own.RunFence
	both.Renewals = max(own.Renewals, written.Renewals)
	if own.Until.After(written.Until) {
		both.Until = own.Until
	}
	if own.Stop {
		both.Stop, both.Grace = true, own.Grace
		if written.Stop {
			both.Grace = min(own.Grace, written.Grace)
		}
	}
	if len(own.Secrets) > 0 {
		both.Secrets = own.Secrets
	}
	return both
}

// times are when an attempt ran, which is what is paid for: as this server saw it or,
// where no server looked, as Slurm did; never as its job says. What neither of them
// knows took no time.
func (a *attempt) times(now time.Time) (start, end time.Time) {
	start, end = now, now
	switch {
	case !a.startedAt.IsZero():
		start = a.startedAt
	case !a.notBegunAt.IsZero():
		start = a.notBegunAt
	case a.slurm.ended() && !a.slurm.start.IsZero() && a.slurm.start.Before(now):
		start = a.slurm.start
	}
	if e := a.slurm.end; a.slurm.ended() && e.Before(now) && !e.Before(start) {
		end = e
	}
	return start, end
}

// lastAtWork is when an attempt without a record ended: as Slurm says, or when its job
// was last heard of. What came after is the time that it took to notice.
func (a *attempt) lastAtWork(now time.Time) time.Time {
	end := a.heard
	if a.slurm.ended() && !a.slurm.end.IsZero() {
		end = a.slurm.end
	}
	if end.Before(a.startedAt) || end.After(now) {
		return now
	}
	return end
}

// noteSuspended notes what Slurm says of an attempt at a moment, since it last said
// something.
func (a *attempt) noteSuspended(j slurmJob, now time.Time) {
	if j.state != "SUSPENDED" {
		return
	}
	if n := len(a.suspended); n > 0 && a.slurm.state == j.state {
		a.suspended[n-1].To = now
		return
	}
	a.suspended = append(a.suspended, executor.Span{From: now, To: now})
}

// seenByServer reports whether this server can tell when an attempt began.
func (a *attempt) seenByServer() bool { return !a.startedAt.IsZero() || !a.notBegunAt.IsZero() }

// namePrefix begins the names of all jobs of an installation.
func namePrefix(installation string) string { return "millrace-" + installation + "-" }

// jobName is an attempt's alone, also among those of the same key.
func jobName(installation string, known about) string {
	sum := sha256.Sum256([]byte(known.Key.Folder() + "\x00" + known.Fence))
	return namePrefix(installation) + hex.EncodeToString(sum[:8])
}

// sealer closes what only servers may read or write, in folders that tasks may reach.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead}, err
}

// seal closes a value. It can be opened under the same name alone.
func (s *sealer) seal(name string, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	return s.aead.Seal(nil, nil, text, []byte(name)), err
}

func (s *sealer) open(name string, sealed []byte, value any) error {
	text, err := s.aead.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}
