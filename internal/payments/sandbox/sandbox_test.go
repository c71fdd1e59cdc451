package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
)

func TestACheckoutIsFoundByItsSecretOnTheBuyersOrigin(t *testing.T) {
	t.Parallel()
	order := billing.Order{ID: "ord_1", Origin: "https://cloud.example.org", Secret: "k3y"}
	got, err := Sandbox{}.Start(context.Background(), order)
	if err != nil {
		t.Fatal(err)
	}
	if got.URL != "https://cloud.example.org/checkout/k3y" {
		t.Errorf("the checkout is at %s", got.URL)
	}
	if strings.Contains(got.ID, order.Secret) {
		t.Errorf("the session's name %q gives the secret away", got.ID)
	}
}

func TestEveryStateOfACheckoutIsAFinishedPage(t *testing.T) {
	t.Parallel()
	for state, want := range map[billing.OrderState]string{
		billing.OrderOpen:      "Pay 45.00 USD",
		billing.OrderPending:   "Waiting for the payment",
		billing.OrderPaid:      "5,000 credits added",
		billing.OrderFailed:    "Payment failed",
		billing.OrderCancelled: "Payment cancelled",
		billing.OrderExpired:   "has expired",
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			view := checkout()
			view.State = state
			html := render(t, Sandbox{}.CheckoutPage, view)
			if !strings.Contains(html, want) || !strings.Contains(html, "This is a sandbox.") {
				t.Errorf("the page says neither %q nor that it is a sandbox:\n%s", want, html)
			}
			if buttons := strings.Count(html, "<button"); (buttons == 2) != (state == billing.OrderOpen) {
				t.Errorf("the page has %d buttons", buttons)
			}
			if invoiced := strings.Contains(html, view.InvoiceURL); invoiced != (state == billing.OrderPaid) {
				t.Errorf("the page links the invoice: %v", invoiced)
			}
		})
	}
}

func TestTheFormSendsTheDecisionWithoutScript(t *testing.T) {
	t.Parallel()
	html := render(t, Sandbox{}.CheckoutPage, checkout())
	for _, want := range []string{
		`<form method="post" action="/checkout/k3y">`,
		`type="submit" name="decision" value="pay"`,
		`type="submit" name="decision" value="cancel"`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestPagesNeedNothingButTheirOwnStylesheet(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=|src=|@import|url\(`)
	for name, text := range map[string]string{
		"checkout":   render(t, Sandbox{}.CheckoutPage, checkout()),
		"invoice":    render(t, Sandbox{}.InvoicePage, invoice()),
		"stylesheet": string(Sandbox{}.Stylesheet()),
	} {
		if found := foreign.FindString(text); found != "" {
			t.Errorf("the %s has %q, which the pages' policy forbids", name, found)
		}
	}
	if html := render(t, Sandbox{}.CheckoutPage, checkout()); !strings.Contains(html, `href="`+StylesheetPath+`"`) {
		t.Error("the page does not link its stylesheet")
	}
}

func TestNamesAreShownAndNeverRun(t *testing.T) {
	t.Parallel()
	hostile := `<script>alert(1)</script>"><img src=x>`
	c, i := checkout(), invoice()
	c.TeamName, c.Problem, c.BuyerEmail, c.Package.Name = hostile, hostile, hostile, hostile
	c.ReturnURL, c.State = "javascript:alert(1)", billing.OrderPaid
	i.TeamName, i.Description, i.Number, i.PDFURL = hostile, hostile, hostile, "javascript:alert(1)"
	for name, html := range map[string]string{
		"checkout": render(t, Sandbox{}.CheckoutPage, c),
		"invoice":  render(t, Sandbox{}.InvoicePage, i),
	} {
		for _, bad := range []string{"<script", "<img", "javascript:"} {
			if strings.Contains(html, bad) {
				t.Errorf("%s lets %s through", name, bad)
			}
		}
	}
}

func TestAnInvoicePageCountsRefunds(t *testing.T) {
	t.Parallel()
	view := invoice()
	for name, tt := range map[string]struct {
		refunded int64
		want     []string
	}{
		"none":   {0, []string{">Paid</p>", "Total", "45.00 USD"}},
		"a part": {15_00, []string{"Partly refunded", "−15.00 USD", "30.00 USD"}},
		"all":    {45_00, []string{">Refunded</p>", "−45.00 USD", ">0.00 USD<"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := view
			view.Refunded = tt.refunded
			html := render(t, Sandbox{}.InvoicePage, view)
			for _, want := range tt.want {
				if !strings.Contains(html, want) {
					t.Errorf("the page lacks %q:\n%s", want, html)
				}
			}
		})
	}
}

func TestThePDFSaysWhatThePageSays(t *testing.T) {
	t.Parallel()
	view := invoice()
	view.Refunded = 15_00
	text := pdfText(t, view)
	for _, want := range []string{
		"SANDBOX — no money was charged", "Invoice MR-2026-0001", "2 March 2026",
		view.TeamName, view.BuyerEmail, view.Description, "5,000", "45.00 USD", "−15.00 USD", "30.00 USD",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the PDF lacks %q:\n%s", want, text)
		}
	}
}

func TestNamesOfAnyAlphabetComeOutOfThePDF(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Zürich – Genómica & Łódź", "Лаборатория геномики", "Εργαστήριο Γενωμικής", "Phòng thí nghiệm Đà Nẵng",
		"東京大学 ゲノム解析", "유전체 연구소",
	} {
		view := invoice()
		view.TeamName = name
		if text := pdfText(t, view); !strings.Contains(text, name) {
			t.Errorf("%q is not in the PDF:\n%s", name, text)
		}
	}
}

func TestWhatThePDFCannotDrawDoesNotStopIt(t *testing.T) {
	t.Parallel()
	view := invoice()
	view.TeamName, view.Description, view.BuyerEmail = "Lab 🧬 One", "1,000 🪙\n\tcredits", "\x00\xff@example.org"
	if text := pdfText(t, view); !strings.Contains(text, "Lab \ufffd One") {
		t.Errorf("the rest of the name is not in the PDF:\n%s", text)
	}
}

func TestALongNameWrapsInsideTheSheet(t *testing.T) {
	t.Parallel()
	view := invoice()
	view.TeamName = strings.TrimSpace(strings.Repeat("Department of Computational Genomics ", 6))
	text := strings.Join(strings.Fields(pdfText(t, view)), " ")
	if !strings.Contains(text, view.TeamName) {
		t.Errorf("the long name is not whole:\n%s", text)
	}
}

func TestAnInvoiceIsTheSamePDFEachTime(t *testing.T) {
	t.Parallel()
	first, err := Sandbox{}.InvoicePDF(invoice())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Sandbox{}.InvoicePDF(invoice())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Error("the same invoice gave two files")
	}
}

func TestMoneyIsWrittenAsItsCurrencyIs(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"10.00 USD":         money(10_00, "usd"),
		"0.05 EUR":          money(5, "eur"),
		"−0.05 EUR":         money(-5, "eur"),
		"1,234,567.89 USD":  money(1_234_567_89, "usd"),
		"1,500 JPY":         money(1500, "jpy"),
		"1.500 KWD":         money(1500, "kwd"),
		"20,000":            count(20_000 * credits.Credit),
		"1,000.5":           count(1_000*credits.Credit + 500_000),
		"0.00 USD":          money(0, "usd"),
		"−1,000,000.00 USD": money(-1_000_000_00, "usd"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func checkout() billing.CheckoutView {
	return billing.CheckoutView{
		State: billing.OrderOpen, Package: credits.DefaultCatalog().Packages[1],
		TeamName: "Müller Lab", BuyerEmail: "ada@example.org",
		ExpiresAt: time.Date(2026, 3, 3, 9, 15, 0, 0, time.UTC),
		Action:    "/checkout/k3y", ReturnURL: "/billing", InvoiceURL: "/invoices/1nv",
	}
}

func invoice() billing.InvoiceView {
	at := time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC)
	return billing.InvoiceView{
		Number: "MR-2026-0001", IssuedAt: at, PaidAt: at, TeamName: "Müller Lab", BuyerEmail: "ada@example.org",
		Description: "5,000 credits", Credits: 5_000 * credits.Credit, Amount: 45_00, Currency: "usd",
		PDFURL: "/invoices/1nv.pdf", ReturnURL: "/billing",
	}
}

func render[V any](t *testing.T, page func(V) ([]byte, error), view V) string {
	t.Helper()
	html, err := page(view)
	if err != nil {
		t.Fatal(err)
	}
	return string(html)
}

// pdfText is what a reader's search or a screen reader finds in the PDF.
func pdfText(t *testing.T, view billing.InvoiceView) string {
	t.Helper()
	if _, err := exec.LookPath("pdftotext"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("pdftotext is missing: run scripts/setup")
		}
		t.Skip("pdftotext is missing: run scripts/setup")
	}
	pdf, err := Sandbox{}.InvoicePDF(view)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "invoice.pdf")
	if err := os.WriteFile(path, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("pdftotext", "-enc", "UTF-8", path, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
