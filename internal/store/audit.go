package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/ids"
)

var _ audit.Store = (*DB)(nil)

// chainEnd is what audit_chains knows of a chain.
type chainEnd struct {
	chain  string
	seq    int64
	hash   string
	first  int64
	anchor string
	code   string
}

// prove is the code that goes with a chain's ends.
func (s *sealer) prove(c chainEnd) string {
	h := hmac.New(sha256.New, s.key("audit chains"))
	fmt.Fprintf(h, "%q %d %q %d %q", c.chain, c.seq, c.hash, c.first, c.anchor)
	return hex.EncodeToString(h.Sum(nil))
}

// WritePending writes the pending audit entry of the context by itself.
func (db *DB) WritePending(ctx context.Context) error {
	return db.inTx(ctx, func(*DB) error { return nil })
}

// withAudit does fn and writes the pending audit entry of the context, if there is one, in the
// same transaction; it counts as written once that is committed.
func withAudit(ctx context.Context, fn func(*DB) error) (do func(*DB) error, committed func()) {
	p := audit.From(ctx)
	if p == nil {
		return fn, func() {}
	}
	do = func(tx *DB) error {
		before := p.Entry
		if err := tx.nameTarget(ctx, &before); err != nil { // which fn may delete
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		e := p.Entry
		if e.Target == before.Target {
			e.TargetName = cmp.Or(before.TargetName, e.TargetName)
		}
		if err := tx.takeChange(ctx, e, p.Allowance); err != nil {
			return err
		}
		return tx.appendAudit(ctx, e)
	}
	return do, func() { p.Written = true }
}

// takeChange counts a change against the daily allowance of the account that makes it, and
// refuses it where the allowance is used up. It is the last before the entry is written, so
// that only changes that are made count, and changes of one account wait for each other no
// longer than changes in one team do.
func (db *DB) takeChange(ctx context.Context, e audit.Entry, a audit.Allowance) error {
	if a == 0 || e.Actor.Type != "user" {
		return nil
	}
	n, err := db.changed(ctx, `
		UPDATE users SET changes_until = CASE WHEN changes_until > $1 THEN changes_until ELSE $1 END + $2 WHERE id = $3 AND changes_until <= $4`,
		micros(e.At), a.Share().Microseconds(), e.Actor.ID, micros(a.Latest(e.At)))
	if err != nil || n == 1 {
		return err
	}
	var until int64
	err = db.q.QueryRowContext(ctx, `SELECT changes_until FROM users WHERE id = $1`, e.Actor.ID).Scan(&until)
	if errors.Is(err, sql.ErrNoRows) { // the account is deleted
		return nil
	}
	if err != nil {
		return err
	}
	return a.Exceeded(fromMicros(until), e.At)
}

// appendAudit adds an entry to the end of its chain. Whoever else does something in
// the same team waits until this transaction has ended.
func (db *DB) appendAudit(ctx context.Context, e audit.Entry) error {
	if err := db.nameTarget(ctx, &e); err != nil {
		return err
	}
	if _, err := db.q.ExecContext(ctx, `
		INSERT INTO audit_chains (chain, seq, hash, first_seq, anchor, code) VALUES ($1, 0, '', 1, '', '') ON CONFLICT (chain) DO NOTHING`, e.Chain); err != nil {
		return err
	}
	end, err := db.chainEnd(ctx, e.Chain)
	if err != nil {
		return err
	}
	e.Seq, e.Prev = end.seq+1, end.hash
	e.Hash = e.Sum()
	_, err = db.q.ExecContext(ctx, `
		INSERT INTO audit (chain, seq, at, actor_type, actor_id, actor_name, action, target, target_name, via, address, request_id, prev, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		e.Chain, e.Seq, micros(e.At), e.Actor.Type, e.Actor.ID, e.Actor.Name, e.Action, e.Target, e.TargetName, e.Via, e.Address, e.RequestID, e.Prev, e.Hash)
	if err != nil {
		return err
	}
	end.seq, end.hash = e.Seq, e.Hash
	return db.setChainEnd(ctx, end)
}

// alsoOnRecord adds an entry for what is done along with that of the context's pending entry,
// by the same actor.
func (db *DB) alsoOnRecord(ctx context.Context, action, target string) error {
	p := audit.From(ctx)
	if p == nil {
		return nil
	}
	also := p.Entry
	also.Action, also.Target, also.TargetName = action, target, ""
	return db.appendAudit(ctx, also)
}

// nameTarget finds what the target of an entry is called, unless that is known.
func (db *DB) nameTarget(ctx context.Context, e *audit.Entry) error {
	if err := db.completeEntry(ctx, e); err != nil || e.Target == "" || e.TargetName != "" || e.Chain == audit.Installation {
		return err
	}
	names, err := db.TargetNames(ctx, ids.Team(e.Chain), []string{e.Target})
	e.TargetName = names[e.Target]
	return err
}

// completeEntry finds what only the database knows: the name of an actor who
// has just signed in, and the team they work in.
func (db *DB) completeEntry(ctx context.Context, e *audit.Entry) error {
	e.At = e.At.Truncate(time.Microsecond)
	if e.Actor.Type == "user" && e.Actor.Name == "" {
		err := db.q.QueryRowContext(ctx, `SELECT name FROM users WHERE id = $1`, e.Actor.ID).Scan(&e.Actor.Name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	if e.Chain != "" || e.Actor.Type != "user" {
		if e.Chain == "" {
			e.Chain = audit.Installation
		}
		return nil
	}
	err := db.q.QueryRowContext(ctx, `SELECT team_id FROM memberships WHERE user_id = $1 ORDER BY joined_at, team_id LIMIT 1`, e.Actor.ID).Scan(&e.Chain)
	if errors.Is(err, sql.ErrNoRows) {
		e.Chain, err = audit.Installation, nil
	}
	return err
}

// actor says of whom the pending entry is, where that comes out only now.
func actor(ctx context.Context, user ids.User) {
	if p := audit.From(ctx); p != nil && p.Actor.ID == "" {
		p.Actor = audit.Actor{Type: "user", ID: string(user)}
	}
}

// inTeam says of which team the pending entry is, where that comes out only now.
func inTeam(ctx context.Context, team ids.Team) {
	if p := audit.From(ctx); p != nil && p.Chain == "" {
		p.Chain = audit.ChainOf(team)
	}
}

func (db *DB) chainEnd(ctx context.Context, chain string) (c chainEnd, err error) {
	c.chain = chain
	err = db.q.QueryRowContext(ctx, `SELECT seq, hash, first_seq, anchor, code FROM audit_chains WHERE chain = $1 `+db.dialect.forUpdate, chain).
		Scan(&c.seq, &c.hash, &c.first, &c.anchor, &c.code)
	return c, db.asFault(err, "chain")
}

func (db *DB) setChainEnd(ctx context.Context, c chainEnd) error {
	_, err := db.changed(ctx, `UPDATE audit_chains SET seq = $1, hash = $2, first_seq = $3, anchor = $4, code = $5 WHERE chain = $6`,
		c.seq, c.hash, c.first, c.anchor, db.sealer.prove(c), c.chain)
	return err
}

const auditRow = `SELECT chain, seq, at, actor_type, actor_id, actor_name, action, target, target_name, via, address, request_id, prev, hash FROM audit `

func scanAudit(row scanner, e *audit.Entry) error {
	var at int64
	err := row.Scan(&e.Chain, &e.Seq, &at, &e.Actor.Type, &e.Actor.ID, &e.Actor.Name, &e.Action, &e.Target, &e.TargetName, &e.Via, &e.Address, &e.RequestID, &e.Prev, &e.Hash)
	e.At = fromMicros(at)
	return err
}

// AuditEntries are a chain's entries, newest first.
func (db *DB) AuditEntries(ctx context.Context, chain string, f audit.Filter, limit int) ([]audit.Entry, error) {
	query, args := auditRow+`WHERE chain = $1`, []any{chain}
	where := func(condition string, value any) {
		args = append(args, value)
		query += fmt.Sprintf(condition, len(args))
	}
	if f.Before > 0 {
		where(` AND seq < $%d`, f.Before)
	}
	if f.Actor != "" {
		where(` AND actor_id = $%d`, f.Actor)
	}
	if prefix, all := strings.CutSuffix(f.Action, "."); all {
		where(` AND substr(action, 1, length($%[1]d)) = $%[1]d`, prefix+".")
	} else if f.Action != "" {
		where(` AND action = $%d`, f.Action)
	}
	if !f.Since.IsZero() {
		where(` AND at >= $%d`, micros(f.Since))
	}
	if !f.Until.IsZero() {
		where(` AND at < $%d`, micros(f.Until))
	}
	return all(ctx, db, func(r *sql.Rows, e *audit.Entry) error { return scanAudit(r, e) },
		query+fmt.Sprintf(` ORDER BY seq DESC LIMIT %d`, limit), args...)
}

// Verified is what checking a chain found.
type Verified struct {
	Chain   string
	Entries int64
	Problem string // the first thing that is wrong with it; empty: nothing
}

// VerifyAudit checks every chain from where it begins to where it ends.
func (db *DB) VerifyAudit(ctx context.Context) ([]Verified, error) {
	chains, err := all(ctx, db, func(r *sql.Rows, c *string) error { return r.Scan(c) },
		`SELECT chain FROM audit_chains UNION SELECT chain FROM audit ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var list []Verified
	for _, chain := range chains {
		v, err := db.verifyChain(ctx, chain)
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

// verifyPage is how many entries are looked at at once.
const verifyPage = 1000

// verifyChain checks a chain, and checks it anew where its oldest entries went
// meanwhile: that they are missing is as it should be.
func (db *DB) verifyChain(ctx context.Context, chain string) (v Verified, err error) {
	var before, end chainEnd
	for {
		end, err = db.endOnRecord(ctx, chain)
		if errors.Is(err, sql.ErrNoRows) {
			return Verified{Chain: chain, Problem: "where it ends is not on record"}, nil
		}
		if err != nil || v.Problem != "" && end.first == before.first {
			return v, err
		}
		if v, err = db.verifyTo(ctx, end); err != nil || v.Problem == "" {
			return v, err
		}
		before = end
	}
}

func (db *DB) endOnRecord(ctx context.Context, chain string) (c chainEnd, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT chain, seq, hash, first_seq, anchor, code FROM audit_chains WHERE chain = $1`, chain).
		Scan(&c.chain, &c.seq, &c.hash, &c.first, &c.anchor, &c.code)
	return c, err
}

// verifyTo checks a chain as far as it went at one moment: others write meanwhile.
func (db *DB) verifyTo(ctx context.Context, end chainEnd) (Verified, error) {
	v := Verified{Chain: end.chain}
	if !hmac.Equal([]byte(end.code), []byte(db.sealer.prove(end))) {
		v.Problem = "what is on record of its ends was changed by somebody without the secret key"
		return v, nil
	}
	prev, seq := end.anchor, end.first-1
	for seq < end.seq {
		page, err := all(ctx, db, func(r *sql.Rows, e *audit.Entry) error { return scanAudit(r, e) },
			auditRow+`WHERE chain = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4 + 0`, end.chain, seq, end.seq, verifyPage)
		if err != nil {
			return v, err
		}
		for _, e := range page {
			switch {
			case e.Seq != seq+1:
				v.Problem = fmt.Sprintf("entry %d is missing", seq+1)
			case e.Prev != prev:
				v.Problem = fmt.Sprintf("entry %d does not follow the one before", e.Seq)
			case e.Hash != e.Sum():
				v.Problem = fmt.Sprintf("entry %d was changed", e.Seq)
			}
			if v.Problem != "" {
				return v, nil
			}
			prev, seq = e.Hash, e.Seq
			v.Entries++
		}
		if len(page) == 0 {
			v.Problem = fmt.Sprintf("entry %d is missing", seq+1)
			return v, nil
		}
	}
	if prev != end.hash {
		v.Problem = "its last entry is not the one on record"
	}
	return v, nil
}

// TrimAudit deletes a batch of the oldest entries of a chain, from before a time,
// and keeps the hash of the last of them as the anchor of what is left.
func (db *DB) TrimAudit(ctx context.Context, before time.Time) (n int, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		var chain string
		err := tx.q.QueryRowContext(ctx, `
			SELECT c.chain FROM audit_chains c JOIN audit a ON a.chain = c.chain AND a.seq = c.first_seq
			WHERE a.at < $1 ORDER BY c.chain LIMIT 1`, micros(before)).Scan(&chain)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := tx.chainEnd(ctx, chain)
		if err != nil {
			return err
		}
		last, err := tx.lastBefore(ctx, end, before)
		if err != nil {
			return err
		}
		if err := tx.q.QueryRowContext(ctx, `SELECT hash FROM audit WHERE chain = $1 AND seq = $2`, chain, last).Scan(&end.anchor); err != nil {
			return err
		}
		deleted, err := tx.changed(ctx, `DELETE FROM audit WHERE chain = $1 AND seq <= $2`, chain, last)
		if err != nil {
			return err
		}
		n, end.first = int(deleted), last+1
		return tx.setChainEnd(ctx, end)
	})
	return n, err
}

// lastBefore is the last of the entries that go at once. The first of the chain
// is one of them.
func (db *DB) lastBefore(ctx context.Context, end chainEnd, before time.Time) (int64, error) {
	var kept sql.NullInt64
	err := db.q.QueryRowContext(ctx, `SELECT MIN(seq) FROM audit WHERE chain = $1 AND at >= $2`, end.chain, micros(before)).Scan(&kept)
	last := end.seq
	if kept.Valid {
		last = kept.Int64 - 1
	}
	return min(last, end.first+upkeepBatch-1), err
}

// reproveAudit proves the ends of every chain with another key.
func (db *DB) reproveAudit(ctx context.Context, old, next *sealer) error {
	return db.inTx(ctx, func(tx *DB) error {
		list, err := all(ctx, tx, func(r *sql.Rows, c *chainEnd) error {
			return r.Scan(&c.chain, &c.seq, &c.hash, &c.first, &c.anchor, &c.code)
		}, `SELECT chain, seq, hash, first_seq, anchor, code FROM audit_chains ORDER BY chain`)
		if err != nil {
			return err
		}
		for _, c := range list {
			if !hmac.Equal([]byte(c.code), []byte(old.prove(c))) {
				continue // done before, or a forgery, which is not to be made good
			}
			if _, err := tx.changed(ctx, `UPDATE audit_chains SET code = $1 WHERE chain = $2`, next.prove(c), c.chain); err != nil {
				return err
			}
		}
		return nil
	})
}
