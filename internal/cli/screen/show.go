package screen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Tell prints a line that is no result, beside the results.
func (w Console) Tell(format string, args ...any) { fmt.Fprintf(w.Err, format+"\n", args...) }

// Say prints a line of the result.
func (w Console) Say(format string, args ...any) { fmt.Fprintf(w.Out, format+"\n", args...) }

// colourful reports whether results may be coloured.
func (w Console) colourful() bool {
	_, ok := terminal(w.Out)
	return ok && w.Env("NO_COLOR") == "" && w.Env("TERM") != "dumb"
}

// statusColours are ANSI's, for the states of runs, nodes and invites.
var statusColours = map[string]string{
	"completed": "32", "succeeded": "32", "active": "32", "accepted": "32", "yes": "32",
	"failed": "31", "no": "31", "running": "36", "retrying": "33", "processing": "36",
	"interrupted": "33", "cancelled": "33", "expired": "33", "revoked": "33", "exhausted": "33",
	"queued": "2", "pending": "2", "skipped": "2",
}

func (w Console) Coloured(text string) string {
	if code, ok := statusColours[strings.TrimSpace(text)]; ok && w.colourful() {
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	return text
}

const maxCell = 60 // columns

// Table prints aligned columns; the first row is the heading. The last column
// is never cut: it has room, and it is where ids and sentences stand.
func (w Console) Table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Clean(cell)
			if i < len(row)-1 {
				row[i] = shortened(row[i])
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell += strings.Repeat(" ", widths[i]-Columns(cell)+2)
			}
			line.WriteString(w.Coloured(cell))
		}
		w.Say("%s", strings.TrimRight(line.String(), " "))
	}
}

// Facts prints names and values below one another; empty values are left out.
func (w Console) Facts(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			w.Say("%-*s  %s", width, pairs[i], w.Coloured(Clean(pairs[i+1])))
		}
	}
}

func shortened(text string) string {
	if Columns(text) <= maxCell {
		return text
	}
	return Cut(text, maxCell-1) + "…"
}

// Clean makes somebody else's text safe to show on one line of a terminal, where what
// turns the direction of writing would have the rest of the line read backwards.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
}

// CleanLines is Clean for a text of several lines.
func CleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Clean(line)
	}
	return strings.Join(lines, "\n")
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// LogText is what a command wrote, as a terminal may see it: colours pass,
// whatever else would steer the terminal does not. Files get it as it is.
func (w Console) LogText(text string) string {
	if _, ok := terminal(w.Out); !ok {
		return text
	}
	safe := func(part string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
				return '·'
			}
			return r
		}, part)
	}
	var out strings.Builder
	for {
		at := colour.FindStringIndex(text)
		if at == nil {
			out.WriteString(safe(text))
			return out.String()
		}
		out.WriteString(safe(text[:at[0]]))
		if w.colourful() {
			out.WriteString(text[at[0]:at[1]])
		}
		text = text[at[1]:]
	}
}

// Ago says how long ago t was, as people do.
func (w Console) Ago(t time.Time) string {
	d := w.Now().Sub(t)
	switch {
	case d < -time.Minute:
		return "in " + roughly(-d)
	case d < time.Minute:
		return "just now"
	case d < 30*24*time.Hour:
		return roughly(d) + " ago"
	default:
		return t.Local().Format(time.DateOnly)
	}
}

func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Hour:
		return Count(int(d.Round(time.Minute)/time.Minute), "minute")
	case d < 2*day:
		return Count(int(d.Round(time.Hour)/time.Hour), "hour")
	default:
		return Count(int(d.Round(day)/day), "day")
	}
}

func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Duration is a length of time in at most two units.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
}

func Milliseconds(ms *int64) string {
	if ms == nil {
		return "–"
	}
	return Duration(time.Duration(*ms) * time.Millisecond)
}

// Size is a number of bytes; a KB is 1024 of them, as everywhere in the API.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < 4 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %cB", value, " KMGT"[unit])
}

// Amount is a number of credits, to four decimals, in groups of thousands.
func Amount(credits float64) string {
	text := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(credits, 'f', 4, 64), "0"), ".")
	if text == "0" && credits > 0 {
		return "under 0.0001"
	}
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

func OrDash(text *string) string {
	if text == nil || *text == "" {
		return "–"
	}
	return *text
}
