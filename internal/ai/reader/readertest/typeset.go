package readertest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
)

// Sizes in millimetres and points, on A4.
const (
	margin   = 17.0
	column   = 84.0
	gutter   = 8.0
	top      = 24.0
	bottom   = 276.0
	leading  = 4.9
	bodySize = 10.0
)

// ligatures are what typesetting makes of letters, and text extraction of
// neither.
var ligatures = strings.NewReplacer("ffi", "ﬃ", "fi", "ﬁ", "fl", "ﬂ", "'", "’")

// press puts lines on pages of two columns.
type press struct {
	pdf    *fpdf.Fpdf
	paper  Paper
	left   bool // the column that is being filled
	y      float64
	begins float64 // of the columns on this page
}

// PDF typesets a paper in two columns, with running heads, hyphens at line
// ends and ligatures.
func PDF(t testing.TB, p Paper) []byte {
	t.Helper()
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.AddUTF8FontFromBytes("body", "", dejavusans.TTF)
	pdf.AddUTF8FontFromBytes("body", "B", dejavusansbold.TTF)
	pdf.SetAutoPageBreak(false, 0)
	w := &press{pdf: pdf, paper: p}
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
	w.pdf.SetFont("body", "B", 15)
	for _, line := range w.fill(w.paper.Title, 2*column+gutter) {
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
	w.pdf.SetFont("body", "", bodySize)
	for paragraph := range strings.SplitSeq(text, "\n") {
		for _, line := range w.fill(ligatures.Replace(strings.ReplaceAll(paragraph, "**", "")), column) {
			w.line(line)
		}
	}
	w.y += leading / 2
}

func (w *press) heading(title string) {
	if w.y+5*leading > bottom {
		w.turn()
	}
	w.y += leading / 2
	w.pdf.SetFont("body", "B", bodySize)
	for _, line := range w.fill(title, column) {
		w.line(line)
	}
	w.y += leading / 3
}

// table puts cells beside one another.
func (w *press) table(rows []string) {
	w.pdf.SetFont("body", "", bodySize-2)
	if w.y+float64(len(rows))*leading > bottom {
		w.turn()
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		for i, cell := range cells {
			w.pdf.Text(w.x()+float64(i)*column/float64(len(cells)), w.y, strings.TrimSpace(cell))
		}
		w.y += leading
	}
	w.y += leading
}

func (w *press) x() float64 {
	if w.left {
		return margin
	}
	return margin + column + gutter
}

func (w *press) line(text string) {
	if w.y > bottom {
		w.turn()
	}
	w.pdf.Text(w.x(), w.y, text)
	w.y += leading
}

// turn goes on at the top of the next column.
func (w *press) turn() {
	size, _ := w.pdf.GetFontSize()
	style := w.pdf.GetFontStyle()
	if w.left {
		w.left, w.y = false, w.begins
	} else {
		w.page()
	}
	w.pdf.SetFont("body", style, size)
}

// fill breaks a text into lines, and words at their ends.
func (w *press) fill(text string, width float64) []string {
	var lines []string
	line := ""
	words := strings.Fields(text)
	for len(words) > 0 {
		next := words[0]
		try := strings.TrimSpace(line + " " + next)
		if w.pdf.GetStringWidth(try) <= width {
			line, words = try, words[1:]
			continue
		}
		head, tail := w.hyphenate(next, width-w.pdf.GetStringWidth(line+" "))
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
