package main

import (
	"fmt"
	"io"
	"slices"
)

// row is one line of the table.
type row struct {
	op, field, label string
	digits           int
}

var apiRows = []row{
	{"list", "rps", "list 50: requests/s", 0},
	{"list", "p50_ms", "list 50: p50 ms", 1},
	{"list", "p99_ms", "list 50: p99 ms", 1},
	{"list", "cpu_us", "list 50: server CPU µs/request", 0},
	{"list", "bytes", "list 50: bytes", 0},
	{"create", "rps", "create: requests/s", 0},
	{"create", "p50_ms", "create: p50 ms", 1},
	{"create", "p99_ms", "create: p99 ms", 1},
	{"create", "cpu_us", "create: server CPU µs/request", 0},
	{"create", "rss_mb", "memory after the load, MB", 0},
	{"start", "ready_ms", "start to ready, ms", 0},
	{"start", "rss_mb", "memory when idle, MB", 0},
}

// goal compares a median with a peer's ("" stands for a plain number).
type goal struct {
	op, field, peer string
	atLeast         bool
	bound           float64
	label           string
}

var apiGoals = []goal{
	{"list", "rps", "pocketbase", true, 4, "list: requests/s at least 4 × PocketBase"},
	{"list", "rps", "bare", true, 0.6, "list: requests/s at least 0.6 × bare"},
	{"list", "p99_ms", "pocketbase", false, 0.25, "list: p99 at most 1/4 of PocketBase"},
	{"create", "rps", "pocketbase", true, 3, "create (synchronous=FULL): requests/s at least 3 × PocketBase (NORMAL)"},
	{"create", "p99_ms", "pocketbase", false, 0.5, "create: p99 at most 1/2 of PocketBase"},
	{"start", "ready_ms", "pocketbase", false, 1.5, "start to ready at most 1.5 × PocketBase"},
	{"start", "rss_mb", "", false, 64, "memory when idle at most 64 MB"},
}

const us = "millrace"

// table prints the medians, and ours as a multiple of each peer's.
func (r *results) table(w io.Writer, rows []row) {
	names := r.names()
	var against []string
	if slices.Contains(names, us) {
		against = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == us })
	}
	line := func(label string, cells []string) {
		fmt.Fprintf(w, "%-32s", label)
		for _, cell := range cells {
			fmt.Fprintf(w, "%14s", cell)
		}
		fmt.Fprintln(w)
	}

	head := slices.Clone(names)
	for _, name := range against {
		head = append(head, "× "+name)
	}
	line("median", head)
	for _, row := range rows {
		var cells []string
		for _, name := range names {
			cells = append(cells, cell(r.median(name, row.op, row.field), row.digits))
		}
		for _, name := range against {
			ratio := 0.0
			if theirs := r.median(name, row.op, row.field); theirs > 0 {
				ratio = r.median(us, row.op, row.field) / theirs
			}
			cells = append(cells, cell(ratio, 2))
		}
		line(row.label, cells)
	}
	var failed []string
	for _, name := range names {
		if sum, counted := r.errors(name); counted {
			failed = append(failed, fmt.Sprintf("%.0f", sum))
		}
	}
	if len(failed) > 0 {
		line("failed requests, all rounds", failed)
	}
}

// cell shows a number; what was not measured is no number.
func cell(v float64, digits int) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// errors adds up those of a peer whose loads go on after a failure.
func (r *results) errors(name string) (sum float64, counted bool) {
	for _, m := range r.all {
		if n, ok := m["errors"].(float64); ok && m["name"] == name {
			sum, counted = sum+n, true
		}
	}
	return sum, counted
}

// goals prints those whose peers were measured.
func (r *results) goals(w io.Writer, goals []goal) {
	names := r.names()
	if !slices.Contains(names, us) {
		return
	}
	fmt.Fprintln(w)
	for _, g := range goals {
		if g.peer != "" && !slices.Contains(names, g.peer) || !r.measured(us, g.op) {
			continue
		}
		value := r.median(us, g.op, g.field)
		if g.peer != "" {
			value /= r.median(g.peer, g.op, g.field)
		}
		verdict := "not met"
		if value >= g.bound == g.atLeast || value == g.bound {
			verdict = "met"
		}
		fmt.Fprintf(w, "%-8s %6.2f  %s\n", verdict, value, g.label)
	}
}

func (r *results) measured(name, op string) bool {
	return slices.ContainsFunc(r.all, func(m measurement) bool { return m["name"] == name && m["op"] == op })
}

func (r *results) names() []string {
	var names []string
	for _, m := range r.all {
		if name, ok := m["name"].(string); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// latest is the last value, or 0.
func (r *results) latest(name, op, field string) float64 {
	for _, m := range slices.Backward(r.all) {
		if m["name"] == name && m["op"] == op {
			return m.number(field)
		}
	}
	return 0
}

func (r *results) median(name, op, field string) float64 {
	var values []float64
	for _, m := range r.all {
		if value, ok := m[field].(float64); ok && m["name"] == name && m["op"] == op {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
