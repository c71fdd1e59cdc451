package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"

	"github.com/millrace/millrace/internal/billing"
)

// The sheet is A4; lengths are in millimetres, font sizes in points.
const (
	family  = "DejaVu"
	margin  = 22.0
	width   = 210 - 2*margin
	creditW = 34.0
	amountW = 40.0
	textW   = width - creditW - amountW

	ruleWidth = 0.2
)

// How a PDF draws letters.
const (
	fill          = 0
	fillAndStroke = 2
)

// The colours of the pages' light face.
type colour struct{ r, g, b int }

var (
	ink        = colour{0x16, 0x21, 0x1d}
	quiet      = colour{0x52, 0x60, 0x5a}
	line       = colour{0xd9, 0xe0, 0xdd}
	warn       = colour{0x8a, 0x4b, 0x00}
	warnGround = colour{0xfd, 0xf3, 0xe3}
)

// InvoicePDF is an invoice as a file, marked as what it is. The same view gives
// the same bytes.
//
// Its font draws Latin, Greek, Cyrillic and their neighbours. Chinese, Japanese
// and Korean stay text that can be found and copied, but are drawn as boxes: a
// font for them takes many megabytes. The page shows them as the browser does.
func (Sandbox) InvoicePDF(view billing.InvoiceView) ([]byte, error) {
	view.TeamName, view.Description = drawable(view.TeamName), drawable(view.Description)
	view.BuyerEmail, view.Number = drawable(view.BuyerEmail), drawable(view.Number)
	s := newSheet(view)
	s.mark("SANDBOX — no money was charged")
	s.heading(view)
	s.parties(view)
	s.items(view)
	s.total(view)

	var out bytes.Buffer
	if err := s.pdf.Output(&out); err != nil {
		return nil, fmt.Errorf("write invoice %s: %w", view.Number, err)
	}
	return out.Bytes(), nil
}

// sheet is the invoice's page while it is being written, from top to bottom.
type sheet struct{ pdf *fpdf.Fpdf }

func newSheet(view billing.InvoiceView) sheet {
	pdf := fpdf.New("P", "mm", "A4", "")
	// A font of our own: the ones every reader has know Latin letters only. It has one
	// weight, since a second one would be another large file in the program.
	pdf.AddUTF8FontFromBytes(family, "", dejavusans.TTF)
	pdf.SetTitle("Invoice "+view.Number, true)
	pdf.SetAuthor("Millrace", true)
	pdf.SetCreator("Millrace sandbox", true)
	pdf.SetProducer("", true)
	pdf.SetLang("en")
	pdf.SetCreationDate(view.IssuedAt.UTC())
	pdf.SetModificationDate(view.IssuedAt.UTC())
	pdf.SetCatalogSort(true)
	pdf.SetMargins(margin, margin, margin)
	pdf.SetCellMargin(0)
	pdf.SetAutoPageBreak(true, margin)
	pdf.AddPage()
	return sheet{pdf: pdf}
}

func (s sheet) mark(text string) {
	s.bold(11, warn)
	s.pdf.SetFillColor(warnGround.r, warnGround.g, warnGround.b)
	s.pdf.CellFormat(width, 12, text, "", 1, "C", true, 0, "")
	s.pdf.Ln(10)
}

func (s sheet) heading(view billing.InvoiceView) {
	s.bold(12, ink)
	s.pdf.CellFormat(width, 6, "Millrace", "", 1, "L", false, 0, "")
	s.pdf.Ln(6)
	s.bold(22, ink)
	s.pdf.MultiCell(width, 10, "Invoice "+view.Number, "", "L", false)
	s.pdf.Ln(8)
}

func (s sheet) parties(view billing.InvoiceView) {
	s.fact("Issued", day(view.IssuedAt))
	if !view.PaidAt.IsZero() {
		s.fact("Paid", day(view.PaidAt))
	}
	s.fact("Billed to", view.TeamName)
	if view.BuyerEmail != "" {
		s.fact("Ordered by", view.BuyerEmail)
	}
	s.pdf.Ln(10)
}

func (s sheet) fact(name, text string) {
	const nameW = 34
	s.font(10, quiet)
	s.pdf.CellFormat(nameW, 6.5, name, "", 0, "L", false, 0, "")
	s.font(10, ink)
	s.pdf.MultiCell(width-nameW, 6.5, text, "", "L", false)
}

func (s sheet) items(view billing.InvoiceView) {
	s.font(9, quiet)
	s.row("Description", "Credits", "Amount")
	s.rule()
	s.font(10, ink)
	s.row(view.Description, count(view.Credits), money(view.Amount, view.Currency))
	s.rule()
}

func (s sheet) total(view billing.InvoiceView) {
	if view.Refunded > 0 {
		s.font(10, quiet)
		s.row("", "Refunded", money(-view.Refunded, view.Currency))
	}
	s.bold(12, ink)
	s.row("", "Total", money(net(view), view.Currency))
	s.pdf.Ln(14)
	s.font(9, quiet)
	s.pdf.MultiCell(width, 5, "This invoice was made by a sandbox for trying things out. It asks for no payment, proves none, and is not a tax document.", "", "L", false)
}

// row writes the two numbers first, so that a long text may wrap under itself.
func (s sheet) row(text, credits, amount string) {
	const height = 8
	y := s.pdf.GetY()
	s.pdf.SetXY(margin+textW, y)
	s.pdf.CellFormat(creditW, height, credits, "", 0, "R", false, 0, "")
	s.pdf.CellFormat(amountW, height, amount, "", 0, "R", false, 0, "")
	s.pdf.SetXY(margin, y)
	s.pdf.MultiCell(textW, height, text, "", "L", false)
}

func (s sheet) rule() {
	s.pdf.SetDrawColor(line.r, line.g, line.b)
	s.pdf.SetLineWidth(ruleWidth)
	y := s.pdf.GetY() + 1
	s.pdf.Line(margin, y, margin+width, y)
	s.pdf.SetY(y + 1)
}

func (s sheet) font(points float64, c colour) {
	s.pdf.SetFont(family, "", points)
	s.pdf.SetTextColor(c.r, c.g, c.b)
	s.pdf.SetTextRenderingMode(fill)
}

// bold is font with a line around each letter.
func (s sheet) bold(points float64, c colour) {
	const millimetres = 25.4 / 72
	s.font(points, c)
	s.pdf.SetDrawColor(c.r, c.g, c.b)
	s.pdf.SetLineWidth(points / 30 * millimetres)
	s.pdf.SetTextRenderingMode(fillAndStroke)
}

// drawable puts a mark where the PDF library would give up: at characters
// beyond the first plane of Unicode, such as emoji.
func drawable(text string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
