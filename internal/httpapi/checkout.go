package httpapi

import (
	"io"
	"net/http"
	"strings"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Pages draws the sandbox's checkout and invoices.
type Pages interface {
	CheckoutPage(v billing.CheckoutView) ([]byte, error)
	InvoicePage(v billing.InvoiceView) ([]byte, error)
	InvoicePDF(v billing.InvoiceView) ([]byte, error)
	Stylesheet() []byte
}

func (a *API) stripeWebhook(x *exchange) (answer, error) {
	payload, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, smallBody))
	if err != nil {
		return answer{}, fault.TooLarge("an event has at most 1 MB")
	}
	if err := a.Billing.Webhook(x.ctx(), payload, x.r.Header.Get("Stripe-Signature")); err != nil {
		return answer{}, err
	}
	return ok(map[string]bool{"received": true})
}

func (a *API) checkoutCSS(*exchange) (answer, error) {
	if a.Pages == nil {
		return nowhere(nil)
	}
	return answer{media: "text/css; charset=utf-8", raw: a.Pages.Stylesheet()}.with("Cache-Control", "public, max-age=300"), nil
}

func (a *API) showCheckout(x *exchange) (answer, error) {
	p, err := a.Billing.Checkout(x.ctx(), x.r.PathValue("secret"))
	if err != nil {
		return answer{}, err
	}
	here := x.base() + "/checkout/" + x.r.PathValue("secret")
	v := billing.CheckoutView{
		State: p.State, Package: p.Package, TeamName: p.TeamName, BuyerEmail: p.BuyerEmail, ExpiresAt: p.ExpiresAt,
		Action: here, ReturnURL: x.base() + "/billing/return?topup=cancelled",
	}
	if p.State == billing.OrderPaid {
		v.ReturnURL = x.base() + "/billing/return?topup=done"
		v.InvoiceURL = x.base() + "/invoices/" + x.r.PathValue("secret")
	}
	html, err := a.Pages.CheckoutPage(v)
	if err != nil {
		return answer{}, err
	}
	return x.page(html)
}

// decideCheckout takes the form of the page and shows what became of it.
func (a *API) decideCheckout(x *exchange) (answer, error) {
	x.r.Body = http.MaxBytesReader(x.w, x.r.Body, smallBody)
	decide := map[string]func() error{
		"pay":    func() error { _, err := a.Billing.PayCheckout(x.ctx(), x.r.PathValue("secret")); return err },
		"cancel": func() error { _, err := a.Billing.CancelCheckout(x.ctx(), x.r.PathValue("secret")); return err },
	}[x.r.PostFormValue("decision")]
	if decide == nil {
		return answer{}, fault.Invalid("the decision is neither pay nor cancel")
	}
	if err := decide(); err != nil {
		return answer{}, err
	}
	here := x.base() + "/checkout/" + x.r.PathValue("secret")
	return answer{status: http.StatusSeeOther, media: "text/plain", raw: []byte{}}.with("Location", here), nil
}

func (a *API) showInvoice(x *exchange) (answer, error) {
	secret, pdf := strings.CutSuffix(x.r.PathValue("secret"), ".pdf")
	i, err := a.Billing.Invoice(x.ctx(), secret, x.base())
	if err != nil {
		return answer{}, err
	}
	v := billing.InvoiceView{
		Number: i.Number, IssuedAt: i.CreatedAt, PaidAt: i.PaidAt, TeamName: i.TeamName, BuyerEmail: i.BuyerEmail,
		Description: i.Description, Credits: i.Credits, Amount: i.Amount, Refunded: i.Refunded, Currency: i.Currency,
		PDFURL: i.PDFURL, ReturnURL: x.base() + "/billing",
	}
	if pdf {
		file, err := a.Pages.InvoicePDF(v)
		name := `attachment; filename="` + i.Number + `.pdf"`
		return answer{media: "application/pdf", raw: file}.with("Content-Disposition", name), err
	}
	html, err := a.Pages.InvoicePage(v)
	if err != nil {
		return answer{}, err
	}
	return x.page(html)
}
