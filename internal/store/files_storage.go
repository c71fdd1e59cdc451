package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// fileRow is how many bytes a file counts with the definitions for its rows in the
// database, which an empty one has, too.
const fileRow = 512

// storedBytes is what a team keeps, of a row s of storage: its files, and what its
// definitions take beyond the allowance.
var storedBytes = `(s.bytes + CASE WHEN s.definitions > ` + allowance + ` THEN s.definitions - ` + allowance + ` ELSE 0 END)`

var allowance = strconv.FormatInt(credits.DefinitionAllowance, 10)

// StorageLeft is how many more bytes the team may keep.
func (db *DB) StorageLeft(ctx context.Context, team ids.Team) (int64, error) {
	var limit, used int64
	err := db.q.QueryRowContext(ctx, `
		SELECT `+db.storageLimit()+`, COALESCE(`+storedBytes+`, 0) FROM teams t LEFT JOIN storage s ON s.team_id = t.id WHERE t.id = $1`, team).Scan(&limit, &used)
	if err != nil {
		return 0, db.asFault(err, "team")
	}
	if limit == math.MaxInt64 {
		return limit, nil
	}
	return limit - used, nil
}

// addStorage counts bytes of files, if they fit under limit (0: any number does).
func (db *DB) addStorage(ctx context.Context, team ids.Team, size, limit int64) (fits bool, err error) {
	_, err = db.changed(ctx, `INSERT INTO storage (team_id, bytes) VALUES ($1, 0) ON CONFLICT (team_id) DO NOTHING`, team)
	if err != nil {
		return false, err
	}
	n, err := db.changed(ctx, `
		UPDATE storage AS s SET bytes = bytes + $1
		WHERE team_id = $2 AND (CAST($3 AS BIGINT) = 0 OR `+storedBytes+` + $1 <= $3)`, size, team, limit)
	return n == 1, err
}

// fitDefinitions counts bytes of definitions, if the team has room for them: else
// it is fault.KindPayment. What takes less than before always fits.
func (db *DB) fitDefinitions(ctx context.Context, team ids.Team, size int64) error {
	if size <= 0 {
		return db.countDefinitions(ctx, team, size)
	}
	limit := `(SELECT ` + db.storageLimit() + ` FROM teams t WHERE t.id = $1)`
	fits, err := db.addDefinitions(ctx, team, size, ` WHERE storage.definitions + $2 <= `+allowance+` OR storage.bytes + storage.definitions + $2 - `+allowance+` <= COALESCE(`+limit+`, 0)`)
	if err == nil && !fits {
		err = db.noStorage(ctx, team, fault.Payment("the storage that the team's plan includes is full: delete files, runs or workflows, or change to a larger plan").WithCode("storage_limit"))
	}
	return err
}

// definitionsLeft is how many more bytes fitDefinitions lets a team have.
func (db *DB) definitionsLeft(ctx context.Context, team ids.Team) (int64, error) {
	var limit, files, definitions int64
	err := db.q.QueryRowContext(ctx, `
		SELECT `+db.storageLimit()+`, COALESCE(s.bytes, 0), COALESCE(s.definitions, 0) FROM teams t LEFT JOIN storage s ON s.team_id = t.id WHERE t.id = $1`, team).
		Scan(&limit, &files, &definitions)
	return credits.DefinitionAllowance - definitions + min(max(0, limit-files), math.MaxInt64/2), err
}

// countGrowth counts how many bytes more a write takes, of those that size finds before
// and after it.
func (db *DB) countGrowth(ctx context.Context, team ids.Team, size func() (int64, error), write func() error) error {
	before, err := size()
	if err == nil {
		err = write()
	}
	if err != nil {
		return err
	}
	after, err := size()
	if err == nil {
		err = db.countDefinitions(ctx, team, after-before)
	}
	return err
}

// runBytes finds the bytes that a run is counted with; none where there is no such run.
func (db *DB) runBytes(ctx context.Context, id ids.Run) func() (int64, error) {
	return func() (size int64, err error) {
		err = db.q.QueryRowContext(ctx, `SELECT COALESCE((SELECT `+runSize+` FROM runs WHERE id = $1), 0)`, id).Scan(&size)
		return size, err
	}
}

// planLimit is how many bytes a team's plan includes, as SQL of a row t of teams.
func (db *DB) planLimit() string {
	var b strings.Builder
	for _, terms := range db.catalog.Plans {
		fmt.Fprintf(&b, " WHEN '%s' THEN %d", strings.ReplaceAll(string(terms.Name), "'", "''"), cmp.Or(terms.StorageBytes, math.MaxInt64))
	}
	return fmt.Sprintf(`CASE t.plan%s ELSE %d END`, b.String(), cmp.Or(db.catalog.TermsOf("").StorageBytes, math.MaxInt64))
}

// countDefinitions counts bytes of definitions whether or not there is room for them.
func (db *DB) countDefinitions(ctx context.Context, team ids.Team, size int64) error {
	if size == 0 {
		return nil
	}
	_, err := db.addDefinitions(ctx, team, size, "")
	return err
}

// addDefinitions counts bytes of definitions, in one statement with the condition for it.
func (db *DB) addDefinitions(ctx context.Context, team ids.Team, size int64, condition string) (added bool, err error) {
	n, err := db.changed(ctx, `
		INSERT INTO storage (team_id, bytes, definitions) VALUES ($1, 0, CASE WHEN CAST($2 AS BIGINT) > 0 THEN $2 ELSE 0 END)
		ON CONFLICT (team_id) DO UPDATE SET definitions = CASE WHEN storage.definitions + $2 > 0 THEN storage.definitions + $2 ELSE 0 END`+condition, team, size)
	return n == 1, err
}

// The sizes that definitions are counted with, as SQL.
const (
	revisionSize = `octet_length(definition) + octet_length(problems)`
	scheduleSize = `octet_length(given)`
	triggerSize  = `octet_length(given) + octet_length(mapped)`
	// What was reported of a run has its parameters among its texts, if the whole run is
	// reported.
	runSize = `octet_length(definition) + octet_length(inputs) + CASE WHEN kind = 'reported' THEN 0 ELSE octet_length(parameters) END
		+ COALESCE((SELECT text_bytes + octet_length(edges) FROM reported_runs WHERE run_id = runs.id), 0)`
	workflowSize = `octet_length(description)
		+ COALESCE((SELECT CAST(SUM(` + revisionSize + `) AS BIGINT) FROM workflow_revisions WHERE workflow_id = workflows.id), 0)
		+ COALESCE((SELECT CAST(SUM(octet_length(data)) AS BIGINT) FROM document_snapshots WHERE workflow_id = workflows.id), 0)
		+ COALESCE((SELECT CAST(SUM(octet_length(data)) AS BIGINT) FROM document_updates WHERE workflow_id = workflows.id), 0)
		+ COALESCE((SELECT CAST(SUM(octet_length(key)) AS BIGINT) FROM workflow_inputs WHERE workflow_id = workflows.id), 0)
		+ COALESCE((SELECT CAST(SUM(` + scheduleSize + `) AS BIGINT) FROM schedules WHERE workflow_id = workflows.id), 0)
		+ COALESCE((SELECT CAST(SUM(` + triggerSize + `) AS BIGINT) FROM triggers WHERE workflow_id = workflows.id), 0)`
)
