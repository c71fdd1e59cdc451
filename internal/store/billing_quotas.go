package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// newTeams is in place of a team's id in the row of what new teams begin with.
const newTeams ids.Team = ""

const quotaColumns = `q.executors, COALESCE(q.slurm_account, ''), COALESCE(q.slurm_qos, ''), COALESCE(q.slurm_wckey, ''),
	COALESCE(q.storage_bytes, -1), COALESCE(q.team_seconds, -1), COALESCE(q.person_seconds, -1)`

func scanQuotas(row scanner, q *quotas.Quotas, more ...any) error {
	var executors sql.NullString
	err := row.Scan(append([]any{&executors, &q.Slurm.Account, &q.Slurm.QOS, &q.Slurm.WCKey, &q.Storage, &q.Team, &q.Person}, more...)...)
	if err == nil && executors.Valid {
		err = json.Unmarshal([]byte(executors.String), &q.Executors)
	}
	return err
}

// QuotasOf are what a team may use.
func (db *DB) QuotasOf(ctx context.Context, team ids.Team) (q quotas.Quotas, err error) {
	err = scanQuotas(db.q.QueryRowContext(ctx, `SELECT `+quotaColumns+` FROM team_quotas q WHERE q.team_id = $1`, team), &q)
	if errors.Is(err, sql.ErrNoRows) {
		return quotas.None(), nil
	}
	return q, err
}

// ExecutorsOf are the executors that a team may use; nil are all.
func (db *DB) ExecutorsOf(ctx context.Context, team ids.Team) ([]string, error) {
	q, err := db.QuotasOf(ctx, team)
	return q.Executors, err
}

// editQuotas changes what a team may use. Two changes take turns, so that neither undoes
// what the other has done.
func (db *DB) editQuotas(ctx context.Context, team ids.Team, e quotas.Edit) error {
	if err := db.lock(ctx, "quotas "+string(team)); err != nil {
		return err
	}
	q, err := db.QuotasOf(ctx, team)
	if err != nil {
		return err
	}
	return db.writeQuotas(ctx, team, e.Apply(q))
}

func (db *DB) writeQuotas(ctx context.Context, team ids.Team, q quotas.Quotas) error {
	var executors any
	if q.Executors != nil {
		text, err := json.Marshal(q.Executors)
		if err != nil {
			return err
		}
		executors = string(text)
	}
	_, err := db.changed(ctx, `
		INSERT INTO team_quotas (team_id, executors, slurm_account, slurm_qos, slurm_wckey, storage_bytes, team_seconds, person_seconds)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (team_id) DO UPDATE SET executors = excluded.executors, slurm_account = excluded.slurm_account, slurm_qos = excluded.slurm_qos,
			slurm_wckey = excluded.slurm_wckey, storage_bytes = excluded.storage_bytes, team_seconds = excluded.team_seconds, person_seconds = excluded.person_seconds`,
		team, executors, q.Slurm.Account, q.Slurm.QOS, q.Slurm.WCKey, limitOrNull(q.Storage), limitOrNull(q.Team), limitOrNull(q.Person))
	return err
}

func limitOrNull(l quotas.Limit) any {
	if l == quotas.Unlimited {
		return nil
	}
	return int64(l)
}

// beginWithDefaults gives a new team the plan and the quotas that new teams begin with.
func (db *DB) beginWithDefaults(ctx context.Context, team ids.Team) error {
	_, err := db.changed(ctx, `
		UPDATE teams SET plan = (SELECT q.plan FROM team_quotas q WHERE q.team_id = $2)
		WHERE id = $1 AND EXISTS (SELECT 1 FROM team_quotas q WHERE q.team_id = $2 AND q.plan <> '')`, team, newTeams)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `
		INSERT INTO team_quotas (team_id, executors, slurm_account, slurm_qos, slurm_wckey, storage_bytes, team_seconds, person_seconds)
		SELECT CAST($1 AS TEXT), executors, slurm_account, slurm_qos, slurm_wckey, storage_bytes, team_seconds, person_seconds FROM team_quotas WHERE team_id = $2
		ON CONFLICT (team_id) DO NOTHING`, team, newTeams)
	return err
}

// beyondQuota finds a team's quotas in which vCPU-seconds, $4, do not fit: $1 is the
// team, $2 the person, $3 the month.
const beyondQuota = `FROM team_quotas q WHERE q.team_id = $1 AND (
	$4 + (SELECT ` + usedVCPU + ` FROM vcpu_use u WHERE u.team_id = $1) > q.team_seconds
	OR $2 <> '' AND $4 + (SELECT ` + usedVCPU + ` FROM vcpu_use u WHERE u.team_id = $1 AND u.user_id = $2) > q.person_seconds)`

const usedVCPU = `COALESCE(CAST(SUM(CASE WHEN u.period = $3 THEN u.used ELSE 0 END + u.held) AS BIGINT), 0)`

// holdVCPU sets vCPU-seconds aside for somebody. The check and the hold are one
// statement, and the team's balance is locked: two can never both have the last of them.
func (db *DB) holdVCPU(ctx context.Context, s spender, now time.Time) error {
	if s.vcpuSeconds == 0 {
		return nil
	}
	n, err := db.changed(ctx, `
		INSERT INTO vcpu_use (team_id, user_id, period, used, held)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), 0, CAST($4 AS BIGINT) WHERE NOT EXISTS (SELECT 1 `+beyondQuota+`)
		ON CONFLICT (team_id, user_id) DO UPDATE SET held = vcpu_use.held + excluded.held,
			used = CASE WHEN vcpu_use.period = excluded.period THEN vcpu_use.used ELSE 0 END, period = excluded.period`,
		s.team, s.user, billing.Month(now), s.vcpuSeconds)
	if err == nil && n == 0 {
		err = db.spentVCPU(ctx, s, now)
	}
	return err
}

// spentVCPU says which quota left too little.
func (db *DB) spentVCPU(ctx context.Context, s spender, now time.Time) error {
	u, err := db.VCPUUse(ctx, s.team, ids.User(s.user), now)
	if err != nil {
		return err
	}
	if u.Quotas.Team.Left(u.Team.Sum()) < s.vcpuSeconds {
		return quotas.SpentHours("the team's", u.Quotas.Team, u.Team, now)
	}
	return quotas.SpentHours("the person's", u.Quotas.Person, u.Person, now)
}

// settleVCPU ends a hold, and counts what was used.
func (db *DB) settleVCPU(ctx context.Context, team ids.Team, user string, held, used int64, now time.Time) error {
	if held == 0 && used == 0 {
		return nil
	}
	_, err := db.changed(ctx, `
		INSERT INTO vcpu_use (team_id, user_id, period, used, held) VALUES ($1, $2, $3, $4, 0)
		ON CONFLICT (team_id, user_id) DO UPDATE SET held = vcpu_use.held - $5,
			used = CASE WHEN vcpu_use.period = excluded.period THEN vcpu_use.used ELSE 0 END + excluded.used, period = excluded.period`,
		team, user, billing.Month(now), used, held)
	return err
}

// VCPUUse is what a team may use, and what it and one of its people have used this month.
func (db *DB) VCPUUse(ctx context.Context, team ids.Team, user ids.User, now time.Time) (u billing.QuotaUse, err error) {
	if u.Quotas, err = db.QuotasOf(ctx, team); err != nil {
		return u, err
	}
	list, err := db.PeopleUse(ctx, team, now)
	for _, p := range list {
		u.Team.Used += p.Used
		u.Team.Held += p.Held
		if p.User != "" && p.User == user {
			u.Person = p.Use
		}
	}
	return u, err
}

// PeopleUse is what everybody of a team has used this month, most first.
func (db *DB) PeopleUse(ctx context.Context, team ids.Team, now time.Time) ([]billing.PersonUse, error) {
	return all(ctx, db, func(r *sql.Rows, p *billing.PersonUse) error { return r.Scan(&p.User, &p.Name, &p.Used, &p.Held) }, `
		SELECT u.user_id, COALESCE(p.name, ''), CASE WHEN u.period = $2 THEN u.used ELSE 0 END, u.held
		FROM vcpu_use u LEFT JOIN users p ON p.id = u.user_id
		WHERE u.team_id = $1 ORDER BY 3 DESC, u.user_id`, team, billing.Month(now))
}

// fitStorage counts bytes of files, if they fit into what the team's plan includes (0: any
// number does) and into its quota: else it is fault.KindPayment.
func (db *DB) fitStorage(ctx context.Context, team ids.Team, size, included int64) error {
	q, err := db.QuotasOf(ctx, team)
	if err != nil {
		return err
	}
	limit := cmp.Or(included, math.MaxInt64)
	if q.Storage != quotas.Unlimited {
		limit = min(limit, int64(q.Storage))
	}
	fits := false
	if limit > 0 {
		fits, err = db.addStorage(ctx, team, size, limit)
	}
	if err == nil && !fits {
		err = db.noStorage(ctx, team, fault.Payment("this file does not fit into the %d GB of storage that the team's plan includes: delete files, or change to a larger plan", included/credits.GB).WithCode("storage_limit"))
	}
	return err
}

// noStorage says why something does not fit into what a team may keep: its quota, or
// its plan with these words.
func (db *DB) noStorage(ctx context.Context, team ids.Team, planSays error) error {
	q, err := db.QuotasOf(ctx, team)
	if err != nil {
		return err
	}
	var used, plan int64
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE(`+storedBytes+`, 0), `+db.planLimit()+` FROM teams t LEFT JOIN storage s ON s.team_id = t.id WHERE t.id = $1`, team).Scan(&used, &plan)
	if err != nil {
		return db.asFault(err, "team")
	}
	if q.Storage == quotas.Unlimited || plan < int64(q.Storage) {
		return planSays
	}
	return quotas.SpentStorage(q.Storage, used)
}

// storageLimit is how many bytes a team may keep, as SQL of a row t of teams: what its
// plan includes, or its quota where that is less.
func (db *DB) storageLimit() string {
	plan := db.planLimit()
	return `COALESCE((SELECT q.storage_bytes FROM team_quotas q WHERE q.team_id = t.id AND q.storage_bytes < ` + plan + `), ` + plan + `)`
}
