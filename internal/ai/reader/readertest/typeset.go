package readertest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
)

// What all layouts share, in millimetres on A4.
const (
	margin = 17.0
	width  = 176.0
	top    = 24.0
	bottom = 276.0
)

// Layout is how a journal sets its pages. Text extraction orders the columns
// of each differently, and rarely without a slip.
type Layout struct {
	Name    string
	Gutter  float64 // between the columns, in millimetres
	Leading float64 // from line to line
	Size    float64 // of the letters, in points
	Shift   float64 // of the right column against the lines of the left
}

// Layouts are those that papers are set in.
var Layouts = []Layout{
	{"roomy", 8, 4.9, 10, 2},
	{"aligned", 8, 4.9, 10, 0},
	{"narrow", 5, 4.4, 10, 0},
	{"wide", 12, 4.4, 9.5, 1.5},
}

func (l Layout) column() float64 { return (width - l.Gutter) / 2 }

// ligatures are what typesetting makes of letters, and text extraction of
// neither.
var ligatures = strings.NewReplacer("ffi", "ﬃ", "fi", "ﬁ", "fl", "ﬂ", "'", "’")

// press puts lines on pages of two columns.
type press struct {
	Layout
	pdf    *fpdf.Fpdf
	paper  Paper
	left   bool // the column that is being filled
	y      float64
	begins float64 // of the columns on this page
}

// PDF typesets a paper in two columns, with running heads, hyphens at line
// ends and ligatures.
func PDF(t testing.TB, p Paper, l Layout) []byte {
	t.Helper()
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.AddUTF8FontFromBytes("body", "", dejavusans.TTF)
	pdf.SetAutoPageBreak(false, 0)
	w := &press{Layout: l, pdf: pdf, paper: p}
	w.page()
	w.front()
	for block := range strings.SplitSeq(p.Body, "\n\n") {
		w.block(strings.TrimSpace(block))
	}
	var out bytes.Buffer
	if err := pdf.Output(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// page opens the next page, with its head and foot.
func (w *press) page() {
	w.pdf.AddPage()
	w.pdf.SetFont("body", "", 8)
	w.pdf.Text(margin, 14, fmt.Sprintf("%s 12 (2023) 101–118", w.paper.Journal))
	w.pdf.Text(190, 14, fmt.Sprint(100+w.pdf.PageNo()))
	w.pdf.Text(margin, 288, "Downloaded by a reader. All rights are with the authors.")
	w.left, w.y, w.begins = true, top, top
}

// front is the title and the authors, across both columns.
func (w *press) front() {
	w.pdf.SetFont("body", "", 15)
	for _, line := range w.fill(w.paper.Title, width) {
		w.pdf.Text(margin, w.y+3, line)
		w.y += 7
	}
	w.y += 3
	w.pdf.SetFont("body", "", 10)
	w.pdf.Text(margin, w.y+2, w.paper.Authors)
	w.y += 12
	w.begins = w.y
}

func (w *press) block(text string) {
	head, rest, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return
	case strings.HasPrefix(head, "#"):
		w.heading(strings.TrimLeft(head, "# "))
		if rest != "" {
			w.block(rest)
		}
		return
	case strings.HasPrefix(head, "|"):
		w.table(strings.Split(text, "\n"))
		return
	}
	w.pdf.SetFont("body", "", w.Size)
	for paragraph := range strings.SplitSeq(text, "\n") {
		for _, line := range w.fill(ligatures.Replace(strings.ReplaceAll(paragraph, "**", "")), w.column()) {
			w.line(line)
		}
	}
	w.y += w.Leading / 2
}

func (w *press) heading(title string) {
	if w.y+5*w.Leading > bottom {
		w.turn()
	}
	w.y += w.Leading / 2
	w.pdf.SetFont("body", "", w.Size)
	for _, line := range w.fill(title, w.column()) {
		w.line(line)
	}
	w.y += w.Leading / 3
}

// table puts cells beside one another.
func (w *press) table(rows []string) {
	w.pdf.SetFont("body", "", w.Size-2)
	if w.y+float64(len(rows))*w.Leading > bottom {
		w.turn()
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		for i, cell := range cells {
			w.pdf.Text(w.x()+float64(i)*w.column()/float64(len(cells)), w.y, strings.TrimSpace(cell))
		}
		w.y += w.Leading
	}
	w.y += w.Leading
}

func (w *press) x() float64 {
	if w.left {
		return margin
	}
	return margin + w.column() + w.Gutter
}

func (w *press) line(text string) {
	if w.y > bottom {
		w.turn()
	}
	w.pdf.Text(w.x(), w.y, text)
	w.y += w.Leading
}

// turn goes on at the top of the next column.
func (w *press) turn() {
	size, _ := w.pdf.GetFontSize()
	if w.left {
		w.left, w.y = false, w.begins+w.Shift
	} else {
		w.page()
	}
	w.pdf.SetFont("body", "", size)
}

// fill breaks a text into lines, and words at their ends.
func (w *press) fill(text string, room float64) []string {
	var lines []string
	line := ""
	words := strings.Fields(text)
	for len(words) > 0 {
		next := words[0]
		try := strings.TrimSpace(line + " " + next)
		if w.pdf.GetStringWidth(try) <= room {
			line, words = try, words[1:]
			continue
		}
		head, tail := w.hyphenate(next, room-w.pdf.GetStringWidth(line+" "))
		if head == "" && line == "" {
			head, tail = next, ""
		}
		lines = append(lines, strings.TrimSpace(line+" "+head))
		line, words[0] = "", tail
		if tail == "" {
			words = words[1:]
		}
	}
	return append(lines, line)
}

// hyphenate breaks a word so that its head fits, after a hyphen of its own or
// between two letters. It knows no grammar, as typesetters of names do not.
func (w *press) hyphenate(text string, room float64) (head, tail string) {
	letters := []rune(text)
	for i := len(letters) - 3; i >= 3; i-- {
		if !unicode.IsLetter(letters[i-1]) || !unicode.IsLower(letters[i]) {
			continue
		}
		if head = string(letters[:i]) + "-"; w.pdf.GetStringWidth(head) <= room {
			return head, string(letters[i:])
		}
	}
	return "", text
}
