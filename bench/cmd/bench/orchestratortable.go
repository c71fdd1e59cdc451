package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// machineFacts say what was measured on.
func machineFacts() string {
	cpu := valueOf("/proc/cpuinfo", "model name")
	var kb float64
	_, _ = fmt.Sscanf(valueOf("/proc/meminfo", "MemTotal"), "%f", &kb)
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d cores (%s), %.0f GB of memory, Linux %s", runtime.NumCPU(), cpu, kb/(1<<20), strings.TrimSpace(string(kernel)))
}

// valueOf is what follows a name and a colon in a file of the system.
func valueOf(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// loads is the range of the load of the machine before each measurement of a tool.
func loads(all []measurement, name string) string {
	var found []float64
	for _, m := range all {
		var load float64
		if _, err := fmt.Sscan(fmt.Sprint(m["load"]), &load); err == nil && m["name"] == name {
			found = append(found, load)
		}
	}
	if len(found) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f to %.1f", slices.Min(found), slices.Max(found))
}

// writeOrchestrators writes the medians as a page of Markdown has them: the seconds of each tool, and
// how many times as long as ours it takes.
func writeOrchestrators(w io.Writer, a about, r *results, all []work) {
	all = slices.DeleteFunc(slices.Clone(all), func(one work) bool { return one.tasks == 0 })
	fmt.Fprintf(w, "\n%s. %d tasks at a time.\n\n", a.About.Machine, a.About.AtOnce)
	head, rule := "| tool | load |", "|---|---|"
	for _, one := range all {
		head += fmt.Sprintf(" %s | × | CPU |", one)
		rule += "---|---|---|"
	}
	fmt.Fprintf(w, "%s\n%s\n", head, rule)
	for _, name := range r.names() {
		row := fmt.Sprintf("| %s %s | %s |", name, a.About.Versions[name], loads(r.all, name))
		for _, one := range all {
			row += fmt.Sprintf(" %s | %s | %s |", seconds(r.median(name, one.kind, "s")), times(r, name, one.kind), seconds(r.median(name, one.kind, "cpu_s")))
		}
		fmt.Fprintln(w, row)
	}
}

func seconds(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f s", max(0, 1-int(v/100)), v)
}

// times is how many times as long as ours a tool takes.
func times(r *results, name, kind string) string {
	theirs, ours := r.median(name, kind, "s"), r.median(us, kind, "s")
	if theirs == 0 || ours == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", theirs/ours)
}
