package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/search"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/upkeep"
)

// runIndex is how a database finds runs by their words.
type runIndex struct {
	// find reads the index, in one way after the other until one has found enough.
	find func(from, before ids.Run, query string) []indexQuery
	// Words of a query are letters and digits alone.
	and, not, quote, prefix string

	put func(ctx context.Context, q querier, list []indexedRun) error
}

// indexedRun is a run and the words that it is found by.
type indexedRun struct {
	id    ids.Run
	team  ids.Team
	words string
}

// indexQuery reads the index: the tables, what sorts as ids do, and the arguments
// from $12 on. $1 is the team, $2 the cursor, and $11 the first id of interest.
type indexQuery struct {
	from, order string
	args        []any
}

// The full-text index of SQLite knows rows by numbers only, and gives the
// highest first without sorting.
var sqliteRunIndex = runIndex{
	and: ` AND `, not: ` NOT `, quote: `"`, prefix: `*`,
	find: func(from, before ids.Run, query string) []indexQuery {
		return []indexQuery{{
			`run_words CROSS JOIN run_search ON run_search.key = run_words.rowid CROSS JOIN runs ON runs.id = run_search.run_id
			WHERE run_words MATCH $12 AND run_words.rowid <= $13 AND run_words.rowid >= $14`, `run_words.rowid`, []any{query, searchKey(before), searchKey(from)},
		}}
	},
	put: func(ctx context.Context, q querier, list []indexedRun) error {
		for _, r := range list {
			_, err := q.ExecContext(ctx, `
				INSERT INTO run_search (key, run_id) VALUES (COALESCE((SELECT key + 1 FROM run_search WHERE key = $1), $1), $2)
				ON CONFLICT (run_id) DO NOTHING`, searchKey(r.id), r.id)
			if err == nil {
				_, err = q.ExecContext(ctx, `INSERT OR REPLACE INTO run_words (rowid, words) SELECT key, $1 FROM run_search WHERE run_id = $2`, r.words, r.id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// newestRead is how many runs are read before the index for words is asked: they lie
// side by side, and take as long as some hundred of those that the index finds.
const newestRead = "5000"

// A GIN index gives all that it finds, in no order: dear for a word that many
// runs have. So the newest runs are read first, where such a word is soon found
// often enough, and which are all that a small team or a short time has. Each OFFSET 0,
// and the comparison of two columns at once, keep the planner from choosing another way
// by what it believes of teams and words: it has no statistics of a table that was just
// filled, and few of the beginnings of words.
var postgresRunIndex = runIndex{
	and: ` & `, not: ` & !`, quote: `'`, prefix: `:*`,
	find: func(_, _ ids.Run, query string) []indexQuery {
		const (
			inTime = `FROM run_search WHERE (of_team, run_id) < ($1, $2) AND (of_team, run_id) >= ($1, $11) ORDER BY of_team DESC, run_id DESC`
			runsOf = ` ORDER BY run_id DESC OFFSET 0) f CROSS JOIN LATERAL (SELECT * FROM runs WHERE runs.id = f.run_id OFFSET 0) runs WHERE TRUE`
		)
		return []indexQuery{{
			`(SELECT run_id FROM (SELECT run_id, words ` + inTime + ` LIMIT ` + newestRead + `) newest
			WHERE words @@ CAST($12 AS TSQUERY)` + runsOf, `f.run_id`, []any{query},
		}, {
			`(SELECT run_id FROM (SELECT run_id, of_team FROM run_search WHERE words @@ CAST($12 AS TSQUERY) OFFSET 0) every
			WHERE EXISTS (SELECT 1 ` + inTime + ` OFFSET ` + newestRead + ` LIMIT 1) AND of_team = $1 AND run_id < $2 AND run_id >= $11` + runsOf, `f.run_id`, []any{query},
		}}
	},
	// Several in one statement: whoever writes to one of the runs waits meanwhile.
	put: func(ctx context.Context, q querier, list []indexedRun) error {
		return inChunks(list, func(some []indexedRun) error {
			rows, args := make([]string, len(some)), []any{}
			for i, r := range some {
				rows[i] = fmt.Sprintf(`($%d, $%d, array_to_tsvector(string_to_array($%d, ' ')))`, len(args)+1, len(args)+2, len(args)+3)
				args = append(args, r.id, r.team, r.words)
			}
			_, err := q.ExecContext(ctx, `
				INSERT INTO run_search (run_id, of_team, words) VALUES `+strings.Join(rows, ", ")+`
				ON CONFLICT (run_id) DO UPDATE SET words = excluded.words`, args...)
			return err
		})
	},
}

// text writes a query for the runs of a team. What is filtered by is among the
// words where it can be, so that a common word does not have us read all its runs.
func (i runIndex) text(team ids.Team, f runs.Filter, q search.Query) string {
	var terms []string
	for _, word := range append(filterWords(team, f.Workflow, f.Starter, f.Status), search.Words(f.Tag)...) {
		terms = append(terms, i.quote+word+i.quote)
	}
	for _, t := range q {
		term := i.quote + t.Word + i.quote
		if !t.Whole {
			term += i.prefix
		}
		terms = append(terms, term)
	}
	query := strings.Join(terms, i.and)
	if f.Status == lifecycle.Completed { // which is no word, but the other ends are
		for _, other := range []lifecycle.Status{lifecycle.Failed, lifecycle.Cancelled, lifecycle.Interrupted} {
			query += i.not + i.quote + endWord(other) + i.quote
		}
	}
	return query
}

// filterWords are words that no text has, for what runs are filtered by: those of
// other teams cost nobody time. They decide nothing, for the filter itself is asked as
// well. Of states only those in which a run that did not complete has ended:
// nothing follows them, and it is read into the index for them.
func filterWords(team ids.Team, workflow ids.Workflow, starter string, status lifecycle.Status) []string {
	list := []string{filterWord("", string(team))}
	if workflow != "" {
		list = append(list, filterWord("", string(workflow)))
	}
	if starter != "" {
		list = append(list, filterWord("by_", starter))
	}
	if status.Terminal() && status != lifecycle.Completed {
		list = append(list, endWord(status))
	}
	return list
}

func endWord(status lifecycle.Status) string { return filterWord("is_", string(status)) }

func filterWord(kind, text string) string {
	return "_" + kind + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, text[:min(len(text), 80)])
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

// Whose words the index does not have, or has as an older program made them: the
// condition of the index runs_to_index_anew, word for word. An older program beside
// this one knows search_due alone.
const (
	unindexed  = `(search_due OR search_version < 1)`
	nowIndexed = `search_due = FALSE, search_version = 1`
)

// IndexRuns reads the words of runs that are new or have changed into the index.
func (db *DB) IndexRuns(ctx context.Context) (done upkeep.Result, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		list, err := all(ctx, tx, scanForIndex, forIndex+`WHERE `+unindexed+` ORDER BY team_id, id LIMIT $1 + 0 `+tx.dialect.skipLocked, indexBatch)
		if err != nil {
			return err
		}
		done = upkeep.Result{Done: len(list), More: len(list) == indexBatch}
		keys, indexed := make([]ids.Run, len(list)), make([]indexedRun, len(list))
		for i, r := range list {
			keys[i] = r.ID
			indexed[i] = indexedRun{r.ID, r.Team, strings.Join(append(filterWords(r.Team, r.Workflow, r.Starter.ID, r.Status), finding.Words(r)...), " ")}
		}
		if err := tx.dialect.runIndex.put(ctx, tx.q, indexed); err != nil {
			return err
		}
		return inChunks(keys, func(some []ids.Run) error {
			_, err := tx.changed(ctx, `UPDATE runs SET `+nowIndexed+` WHERE id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
			return err
		})
	})
	if err == nil && !done.More {
		err = db.firstStatistics(ctx)
	}
	return done, err
}

// firstStatistics has PostgreSQL look at tables that were filled at once, which it
// does of itself a minute later: until then it reads all runs of a team for a page.
func (db *DB) firstStatistics(ctx context.Context) error {
	if db.dialect.name != postgresDialect.name {
		return nil
	}
	var due bool // not of empty tables: PostgreSQL would have none afterwards either
	err := db.q.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM run_search) AND 3 > (SELECT COUNT(*) FROM pg_stats WHERE schemaname = CURRENT_SCHEMA()
			AND (tablename, attname) IN (('runs', 'team_id'), ('runs', 'search_version'), ('run_search', 'of_team')))`).Scan(&due)
	if err != nil || !due {
		return err
	}
	_, err = db.q.ExecContext(ctx, `ANALYZE runs, run_search`)
	return err
}

// searchRuns are the runs among those that a condition names whose words a query
// finds. What the index does not have yet is read as it is, and first: what is
// indexed meanwhile is then found twice rather than not at all.
func (db *DB) searchRuns(ctx context.Context, team ids.Team, f runs.Filter, where string, args []any) ([]runs.Run, error) {
	q, limit := search.Parse(f.Text), args[8].(int)
	if len(q) == 0 {
		return []runs.Run{}, nil
	}
	among, rows := unindexed+` AND `, mostUnindexed
	if f.Status == lifecycle.Queued || f.Status == lifecycle.Running {
		// They are few as a rule, and it is not in the index who they are.
		among, rows = ``, mostOpenRuns
	}
	found, read, err := db.searchByReading(ctx, among+where, args, limit, rows, q)
	if err != nil || rows == mostOpenRuns && (len(found) >= limit || len(read) < rows) {
		return found[:min(limit, len(found))], err
	}
	if rows == mostOpenRuns { // there are many
		if found, read, err = db.searchByReading(ctx, unindexed+` AND `+where, args, limit, mostUnindexed, q); err != nil {
			return nil, err
		}
	}
	indexed, err := db.searchIndex(ctx, db.dialect.runIndex.text(team, f, q), where, args, limit)
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

// mostOpenRuns is how many queued or running runs a search reads before it asks the index,
// and mostUnindexed how many that the index does not have. There are more only after many
// were brought in at once: the older ones are found a little later.
const mostOpenRuns, mostUnindexed = 1000, 5000

func (db *DB) searchIndex(ctx context.Context, query, where string, args []any, limit int) (list []runs.Run, _ error) {
	for _, find := range db.dialect.runIndex.find(args[10].(ids.Run), args[1].(ids.Run), query) {
		found, err := all(ctx, db, func(r *sql.Rows, v *runs.Run) error { return scanRun(r, v) },
			runRow+` FROM `+find.from+` AND `+where+` ORDER BY `+find.order+` DESC LIMIT $9 + 0`, append(slices.Clone(args), find.args...)...)
		if err != nil {
			return nil, err
		}
		if len(found) > len(list) { // else there was no more to find
			list = found
		}
		if len(list) >= limit {
			break
		}
	}
	return list, nil
}

// searchByReading reads up to so many runs as they are, newest first, until enough
// are found; read are those it looked at.
func (db *DB) searchByReading(ctx context.Context, where string, args []any, limit, most int, q search.Query) (found []runs.Run, read map[ids.Run]bool, err error) {
	const page = 100
	read = map[ids.Run]bool{}
	args = slices.Clone(args)
	args[8] = page
	for len(found) < limit && len(read) < most {
		list, err := all(ctx, db, scanForIndex, forIndex+`WHERE `+where+` ORDER BY id DESC LIMIT $9 + 0`, args...)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range list {
			if read[r.ID] = true; q.Finds(finding.Words(r)) {
				r.Parameters = nil
				found = append(found, r)
			}
			args[1] = r.ID
		}
		if len(list) < page {
			break
		}
	}
	return found, read, nil
}
