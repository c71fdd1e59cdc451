package sandbox

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"time"

	"github.com/millrace/millrace/internal/billing"
)

//go:embed pages/*.html
var files embed.FS

//go:embed pages/sandbox.css
var stylesheet []byte

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"money": money,
	"count": count,
	"day":   day,
	"clock": clock,
	"net":   net,
	"minus": func(n int64) int64 { return -n },
}).ParseFS(files, "pages/*.html"))

// StylesheetPath is where the pages expect their stylesheet.
const StylesheetPath = "/checkout/sandbox.css"

// Stylesheet is what is served at StylesheetPath, as text/css.
func (Sandbox) Stylesheet() []byte { return stylesheet }

// CheckoutPage is the page of a checkout, in whatever state it is.
func (Sandbox) CheckoutPage(view billing.CheckoutView) ([]byte, error) {
	return page("checkout.html", view)
}

// InvoicePage is an invoice for a browser.
func (Sandbox) InvoicePage(view billing.InvoiceView) ([]byte, error) {
	return page("invoice.html", view)
}

func page(name string, view any) ([]byte, error) {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, view); err != nil {
		return nil, fmt.Errorf("write the page %s: %w", name, err)
	}
	return out.Bytes(), nil
}

func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

func clock(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// net is what is left of an invoice's price after refunds.
func net(view billing.InvoiceView) int64 {
	return view.Amount - min(view.Refunded, view.Amount)
}
