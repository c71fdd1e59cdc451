package reported

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// merging is a report on its way into a picture.
type merging struct {
	*Picture
	Change
	report Report
	now    time.Time
	over   bool // the run has ended already
	told   []runs.Event
}

// Merge adds a report to a picture and says what has changed. It is the same in
// any order: of two words about a task the newer one counts, and what follows from
// tasks is computed of all of them.
func (p *Picture) Merge(r Report, now time.Time) Change {
	m := &merging{Picture: p, report: r, now: now, over: p.Run.Status.Terminal()}
	m.Change.LeftOut = cmp.Or(r.LeftOut, p.LeftOut)
	m.declare()
	m.connect()
	for _, t := range r.Tasks {
		m.task(t)
	}
	m.link()
	m.count()
	m.progress()
	m.finish()
	m.steps()
	if !m.over {
		m.log()
	}
	return m.result()
}

// leaveOut notes what is not kept.
func (m *merging) leaveOut(why string) { m.Change.LeftOut = why }

// node is the step of a name, made where it is new; nil where there are too many.
func (m *merging) node(name string) *Node {
	if name == "" {
		name = "(unnamed)"
	}
	id := NodeID(name)
	if m.Step != "" {
		id = m.Step + runs.ProcessMark + id
	}
	if n := m.Picture.Nodes[id]; n != nil {
		return n
	}
	if len(m.Picture.Nodes) >= MaxNodes {
		m.leaveOut(fmt.Sprintf("the run has more than %d steps: the others are not shown", MaxNodes))
		return nil
	}
	n := &Node{ID: id, Name: name, Place: -1, First: -1, Counts: Counts{}, State: lifecycle.NodePending, changed: true}
	m.Picture.Nodes[id], m.Redraw = n, true
	return n
}

func (m *merging) declare() {
	for place, d := range m.report.Nodes {
		n := m.node(d.Name)
		if n == nil {
			continue
		}
		if d.Ordered && (n.Place < 0 || place < n.Place) {
			n.Place, n.changed, m.Redraw = place, true, true
		}
		if d.Expected != nil && (n.Expected == nil || *d.Expected > *n.Expected) {
			n.Expected, n.changed = d.Expected, true
		}
		if d.Closed && !n.Closed {
			n.Closed, n.changed = true, true
		}
	}
}

func (m *merging) connect() {
	for _, e := range m.report.Edges {
		from, to := m.node(e[0]), m.node(e[1])
		if from == nil || to == nil || from == to {
			continue
		}
		key := [2]string{from.ID, to.ID}
		if m.Picture.Edges[key] {
			continue
		}
		if len(m.Picture.Edges) >= MaxEdges {
			m.leaveOut(fmt.Sprintf("the run has more than %d edges: the others are not shown", MaxEdges))
			return
		}
		m.Picture.Edges[key], m.Change.Edges, m.Redraw = true, true, true
	}
}

// task merges what is said of an attempt.
func (m *merging) task(t Task) {
	row := m.Picture.Rows[t.ID]
	if row == nil {
		if row = m.newRow(t); row == nil {
			return
		}
	}
	newer := t.Version > row.Version
	m.keepTexts(row, &t, newer)
	before := row.Task
	row.update(t, newer)
	m.Change.Texts += row.shortTexts() - before.shortTexts()
	if newer {
		row.changed = true
		m.tell(row, before)
	}
	n := m.Picture.Nodes[row.NodeID]
	if n.First < 0 || row.Number < n.First {
		n.First, n.changed = row.Number, true
		m.Redraw = m.Redraw || n.Place < 0
	}
}

func (m *merging) newRow(t Task) *Row {
	if m.Picture.Tasks+m.Change.Tasks >= MaxTasks {
		m.leaveOut(fmt.Sprintf("the run has more than %d tasks: the others are not kept", MaxTasks))
		return nil
	}
	n := m.node(t.Node)
	if n == nil {
		return nil
	}
	if t.Number == Unnumbered {
		t.Number = m.Picture.Tasks + m.Change.Tasks + 1
	}
	row := &Row{NodeID: n.ID, Task: Task{
		ID: t.ID, Chain: t.Chain, Node: n.Name, Number: t.Number, Attempt: t.Attempt, Version: -1, State: Queued,
	}}
	row.Shard = row.Number
	m.Picture.Rows[t.ID] = row
	m.Change.Tasks++
	return row
}

// room reports whether the team can keep so many more bytes of text.
func (m *merging) room(more int64) bool {
	fits := m.TeamTexts+m.Change.Texts+more <= MaxTeamTexts
	if !fits {
		m.leaveOut("the team keeps as many texts of reported runs as it may, at most 1 GB within the storage of its plan: further scripts, messages and logs are not kept. Have old runs deleted to make room")
	}
	return fits
}

// keepTexts counts the texts that a row takes, and leaves them out where the team
// has too many.
func (m *merging) keepTexts(row *Row, t *Task, newer bool) {
	grow := func(text *string, size *int64) {
		if *text == "" || !newer && *size > 0 {
			*text = ""
			return
		}
		more := int64(len(*text)) - *size
		if !m.room(more) {
			*text = ""
			return
		}
		m.Change.Texts += more
		*size = int64(len(*text))
	}
	grow(&t.Script, &row.ScriptSize)
	grow(&t.Message, &row.MessageSize)
	if !m.room(t.shortTexts()) {
		t.Details = Details{}
	}
}

// shortTexts are the bytes of what is kept beside the script and the message.
func (t *Task) shortTexts() int64 {
	d := t.Details
	return int64(len(t.Name) + len(d.WorkDir) + len(d.Container) + len(d.Host) + len(d.NativeID) + len(d.Queue))
}

// update takes what is said; what is older than what is known only fills gaps.
func (r *Row) update(t Task, newer bool) {
	if newer {
		r.Version, r.State, r.WillRetry, r.Ignored, r.Attempt = t.Version, t.State, t.WillRetry, t.Ignored, t.Attempt
	}
	r.changed = r.changed || t.Script != "" || t.Message != ""
	r.Script, r.Message = cmp.Or(t.Script, r.Script), cmp.Or(t.Message, r.Message)
	fill(r, &r.Name, t.Name, newer)
	fill(r, &r.SubmittedAt, t.SubmittedAt, newer)
	fill(r, &r.StartedAt, t.StartedAt, newer)
	fill(r, &r.EndedAt, t.EndedAt, newer)
	fill(r, &r.Peak, t.Peak, newer)
	fill(r, &r.CPU, t.CPU, newer)
	fill(r, &r.ExitCode, t.ExitCode, newer)
	was, is := &r.Details, t.Details
	fill(r, &was.WorkDir, is.WorkDir, newer)
	fill(r, &was.Container, is.Container, newer)
	fill(r, &was.Host, is.Host, newer)
	fill(r, &was.NativeID, is.NativeID, newer)
	fill(r, &was.Queue, is.Queue, newer)
	fill(r, &was.CPUs, is.CPUs, newer)
	fill(r, &was.Memory, is.Memory, newer)
	fill(r, &was.Disk, is.Disk, newer)
	fill(r, &was.TimeMs, is.TimeMs, newer)
	fill(r, &was.CPUPercent, is.CPUPercent, newer)
	fill(r, &was.Read, is.Read, newer)
	fill(r, &was.Written, is.Written, newer)
}

// fill takes a value that was said, unless a newer one is known.
func fill[T comparable](r *Row, known *T, said T, newer bool) {
	var none T
	if said == none || *known == said || *known != none && !newer {
		return
	}
	*known, r.changed = said, true
}

// tell has an event made of a failure, once for each.
func (m *merging) tell(row *Row, before Task) {
	if row.State != Failed || before.State == Failed && before.Version >= 0 || m.over {
		return
	}
	e := runs.Event{
		Type: lifecycle.NodeFailedEvent, At: m.now, Node: row.NodeID, NodeName: row.Node, Shard: &row.Shard, Attempt: &row.Attempt,
		Message: "Task " + cmp.Or(row.Name, row.Node) + " failed",
	}
	if row.ExitCode != nil {
		e.Message = fmt.Sprintf("Task %s exited with status %d", cmp.Or(row.Name, row.Node), *row.ExitCode)
		e.Data = fmt.Appendf(nil, `{"exitCode":%d}`, *row.ExitCode)
	}
	switch {
	case row.WillRetry:
		e.Type, e.Message = lifecycle.NodeRetried, e.Message+"; it will be tried again"
	case row.Ignored:
		e.Message += "; the failure is ignored"
	}
	m.told = append(m.told, e)
}

// link finds which attempts are of one task. An engine that numbers attempts, not
// tasks, gives those of one task the same name; where several tasks have it, a
// further attempt goes to one that failed.
func (m *merging) link() {
	groups := map[[2]string][]*Row{}
	for _, row := range m.Picture.Rows {
		key := [2]string{row.NodeID, row.Chain}
		groups[key] = append(groups[key], row)
	}
	for _, rows := range groups {
		slices.SortFunc(rows, func(a, b *Row) int {
			return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
		})
		var last []*Row // of each task
		for _, row := range rows {
			i := followed(last, row)
			if i < 0 {
				last = append(last, row)
				row.place(row.Number, true)
				continue
			}
			row.place(last[i].Shard, true)
			last[i].place(last[i].Shard, false)
			last[i] = row
		}
	}
}

// place notes which task an attempt is of.
func (r *Row) place(shard int, newest bool) {
	if r.Shard != shard || r.Newest != newest {
		r.Shard, r.Newest, r.changed = shard, newest, true
	}
}

// maxChain is how many tasks of one name are looked through for the one that an
// attempt is of.
const maxChain = 100

// followed is the task whose next attempt a row is, or -1.
func followed(last []*Row, row *Row) int {
	found := -1
	if row.Attempt == 1 || len(last) > maxChain {
		return found
	}
	better := func(a, b *Row) bool {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(rank(a.State == Failed), rank(b.State == Failed)), -cmp.Compare(a.Shard, b.Shard)) > 0
	}
	for i, l := range last {
		if l.Attempt < row.Attempt && (found < 0 || better(l, last[found])) {
			found = i
		}
	}
	return found
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// count brings the counts of steps up to date.
func (m *merging) count() {
	for _, row := range m.Picture.Rows {
		if !row.changed {
			continue
		}
		n := m.Picture.Nodes[row.NodeID]
		n.changed = true
		if is := row.kind(); is != row.counted {
			if row.counted != "" {
				if n.Counts[row.counted]--; n.Counts[row.counted] == 0 {
					delete(n.Counts, row.counted)
				}
			}
			if is != "" {
				n.Counts[is]++
			}
			row.counted = is
		}
		n.CPU += row.CPU - row.cpu
		row.cpu = row.CPU
		n.Peak, n.Attempt = max(n.Peak, row.Peak), max(n.Attempt, row.Attempt)
		if !row.StartedAt.IsZero() && (n.StartedAt.IsZero() || row.StartedAt.Before(n.StartedAt)) {
			n.StartedAt = row.StartedAt
		}
		if row.EndedAt.After(n.EndedAt) {
			n.EndedAt = row.EndedAt
		}
		// Whether another attempt followed does not count: it may be heard of before.
		lasting := row.State == Failed && !row.WillRetry && !row.Ignored
		if lasting && row.ExitCode != nil && (n.ExitCode == nil || *n.ExitCode < *row.ExitCode) {
			n.ExitCode = row.ExitCode
		}
		m.Change.Rows = append(m.Change.Rows, row)
	}
	slices.SortFunc(m.Change.Rows, func(a, b *Row) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID)) })
}
