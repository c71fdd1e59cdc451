package store

import (
	"cmp"
	"context"
	"database/sql"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/search"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/upkeep"
)

// runIndex is how a database finds runs by their words.
type runIndex struct {
	// find reads the index: the tables, the condition with its arguments from
	// $10 on, and what sorts as ids do. In the others $1 is the team and $2 the
	// cursor.
	find func(before ids.Run, query string) (from, where, order string, args []any)
	// Words of a query are letters and digits alone.
	and, quote, prefix string
	put                func(ctx context.Context, q querier, r runs.Run, words string) error
}

// The full-text index of SQLite knows rows by numbers only, and gives the
// highest first without sorting.
var sqliteRunIndex = runIndex{
	and: ` AND `, quote: `"`, prefix: `*`,
	find: func(before ids.Run, query string) (from, where, order string, args []any) {
		return `run_words CROSS JOIN run_search ON run_search.key = run_words.rowid CROSS JOIN runs ON runs.id = run_search.run_id`,
			`run_words MATCH $10 AND run_words.rowid <= $11`, `run_words.rowid`, []any{query, searchKey(before)}
	},
	put: func(ctx context.Context, q querier, r runs.Run, words string) error {
		_, err := q.ExecContext(ctx, `
			INSERT INTO run_search (key, run_id) VALUES (COALESCE((SELECT key + 1 FROM run_search WHERE key = $1), $1), $2)
			ON CONFLICT (run_id) DO NOTHING`, searchKey(r.ID), r.ID)
		if err == nil {
			_, err = q.ExecContext(ctx, `INSERT OR REPLACE INTO run_words (rowid, words) SELECT key, $1 FROM run_search WHERE run_id = $2`, words, r.ID)
		}
		return err
	},
}

var postgresRunIndex = runIndex{
	and: ` & `, quote: `'`, prefix: `:*`,
	find: func(_ ids.Run, query string) (from, where, order string, args []any) {
		return `run_search JOIN runs ON runs.id = run_search.run_id`,
			`run_search.words @@ CAST($10 AS TSQUERY) AND run_search.of_team = $1 AND run_search.run_id < $2`, `run_search.run_id`, []any{query}
	},
	put: func(ctx context.Context, q querier, r runs.Run, words string) error {
		_, err := q.ExecContext(ctx, `
			INSERT INTO run_search (run_id, of_team, words) VALUES ($1, $2, array_to_tsvector(string_to_array($3, ' ')))
			ON CONFLICT (run_id) DO UPDATE SET words = excluded.words`, r.ID, r.Team, words)
		return err
	},
}

// text writes a query for the runs of a team.
func (i runIndex) text(team ids.Team, q search.Query) string {
	terms := []string{i.quote + teamWord(team) + i.quote}
	for _, t := range q {
		term := i.quote + t.Word + i.quote
		if !t.Whole {
			term += i.prefix
		}
		terms = append(terms, term)
	}
	return strings.Join(terms, i.and)
}

// teamWord is a word that the runs of a team have, and no text: what many teams
// call their runs costs none of them time. It does not decide whose a run is.
func teamWord(team ids.Team) string {
	return "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, string(team))
}

// searchKey is a number that sorts as the id does: the 60 bits of it that are
// the time, of which one process uses each once.
func searchKey(id ids.Run) int64 {
	if id == afterAll {
		return math.MaxInt64
	}
	digits := strings.TrimPrefix(string(id), "run_")
	if len(digits) == 32 {
		if n, err := strconv.ParseInt(digits[:12]+digits[13:16], 16, 64); err == nil { // the digit between is the version
			return n
		}
	}
	h := fnv.New64a() // no id of ours; any place will do
	h.Write([]byte(id))
	return int64(h.Sum64() >> 4)
}

// indexBatch is how many runs are indexed in one transaction: others wait meanwhile.
const indexBatch = 200

// forIndex is what the words of a run are made of. Of long parameters the
// beginning is enough.
const forIndex = runRow + `, SUBSTR(parameters, 1, 65536) FROM runs `

func scanForIndex(r *sql.Rows, v *runs.Run) error { return scanRun(r, v, &v.Parameters) }

// IndexRuns reads the words of runs that are new or have changed into the index.
func (db *DB) IndexRuns(ctx context.Context) (done upkeep.Result, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		list, err := all(ctx, tx, scanForIndex, forIndex+`WHERE search_due ORDER BY team_id, id LIMIT $1 + 0 `+tx.dialect.skipLocked, indexBatch)
		if err != nil {
			return err
		}
		done = upkeep.Result{Done: len(list), More: len(list) == indexBatch}
		keys := make([]ids.Run, len(list))
		for i, r := range list {
			keys[i] = r.ID
			if err := tx.dialect.runIndex.put(ctx, tx.q, r, teamWord(r.Team)+" "+strings.Join(finding.Words(r), " ")); err != nil {
				return err
			}
		}
		return inChunks(keys, func(some []ids.Run) error {
			_, err := tx.changed(ctx, `UPDATE runs SET search_due = FALSE WHERE id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
			return err
		})
	})
	return done, err
}

// searchRuns are the runs among those that a condition names whose words a query
// finds. What the index does not have yet is read as it is, and first: what is
// indexed meanwhile is then found twice rather than not at all.
func (db *DB) searchRuns(ctx context.Context, team ids.Team, where string, args []any, before ids.Run, limit int, q search.Query) ([]runs.Run, error) {
	if len(q) == 0 {
		return []runs.Run{}, nil
	}
	found, read, err := db.searchUnindexed(ctx, where, args, before, limit, q)
	if err != nil {
		return nil, err
	}
	from, match, order, more := db.dialect.runIndex.find(before, db.dialect.runIndex.text(team, q))
	indexed, err := all(ctx, db, func(r *sql.Rows, v *runs.Run) error { return scanRun(r, v) },
		runRow+` FROM `+from+` WHERE `+match+` AND `+where+` ORDER BY `+order+` DESC LIMIT $9 + 0`, append(slices.Clone(args), more...)...)
	if err != nil {
		return nil, err
	}
	for _, r := range indexed {
		if !read[r.ID] {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b runs.Run) int { return cmp.Compare(b.ID, a.ID) })
	return found[:min(limit, len(found))], nil
}

// searchUnindexed reads runs that the index does not have as they are, newest
// first, until enough are found; read are those it looked at.
func (db *DB) searchUnindexed(ctx context.Context, where string, args []any, before ids.Run, limit int, q search.Query) (found []runs.Run, read map[ids.Run]bool, err error) {
	const page = 100
	read = map[ids.Run]bool{}
	args = slices.Clone(args)
	for len(found) < limit {
		args[1], args[8] = before, page
		list, err := all(ctx, db, scanForIndex, forIndex+`WHERE search_due AND `+where+` ORDER BY id DESC LIMIT $9 + 0`, args...)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range list {
			if read[r.ID] = true; q.Finds(finding.Words(r)) {
				r.Parameters = nil
				found = append(found, r)
			}
			before = r.ID
		}
		if len(list) < page {
			break
		}
	}
	return found, read, nil
}
