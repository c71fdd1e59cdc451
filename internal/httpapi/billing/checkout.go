package billing

import (
	"io"
	"net/http"
	"strings"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// Pages draws the sandbox's checkout and invoices.
type Pages interface {
	CheckoutPage(v billing.CheckoutView) ([]byte, error)
	InvoicePage(v billing.InvoiceView) ([]byte, error)
	InvoicePDF(v billing.InvoiceView) ([]byte, error)
	Stylesheet() []byte
}

// StripeWebhook answers POST /webhooks/stripe.
func (a *API) StripeWebhook(x *kernel.Exchange) (kernel.Answer, error) {
	payload, err := io.ReadAll(http.MaxBytesReader(x.Writer, x.Request.Body, kernel.SmallBody))
	if err != nil {
		return kernel.Answer{}, fault.TooLarge("an event has at most 1 MB")
	}
	if err := a.Billing.Webhook(x.Context(), payload, x.Request.Header.Get("Stripe-Signature")); err != nil {
		return kernel.Answer{}, err
	}
	return kernel.OK(map[string]bool{"received": true})
}

// CheckoutCSS answers GET /checkout/sandbox.css.
func (a *API) CheckoutCSS(*kernel.Exchange) (kernel.Answer, error) {
	if a.Pages == nil {
		return kernel.NotFound(nil)
	}
	return kernel.Answer{Media: "text/css; charset=utf-8", Raw: a.Pages.Stylesheet()}.With("Cache-Control", "public, max-age=300"), nil
}

// ShowCheckout answers GET /checkout/{secret}.
func (a *API) ShowCheckout(x *kernel.Exchange) (kernel.Answer, error) {
	p, err := a.Billing.Checkout(x.Context(), x.Request.PathValue("secret"))
	if err != nil {
		return kernel.Answer{}, err
	}
	here := x.Base() + "/checkout/" + x.Request.PathValue("secret")
	v := billing.CheckoutView{
		State: p.State, Package: p.Package, TeamName: p.TeamName, BuyerEmail: p.BuyerEmail, ExpiresAt: p.ExpiresAt,
		Action: here, ReturnURL: x.Base() + "/billing", // the page itself says that nothing was charged
	}
	if p.State == billing.OrderPaid {
		v.ReturnURL = x.Base() + "/billing/return?topup=done"
		v.InvoiceURL = x.Base() + "/invoices/" + x.Request.PathValue("secret")
	}
	html, err := a.Pages.CheckoutPage(v)
	if err != nil {
		return kernel.Answer{}, err
	}
	return x.HTML(html)
}

// DecideCheckout takes the form of the page and shows what became of it.
func (a *API) DecideCheckout(x *kernel.Exchange) (kernel.Answer, error) {
	x.Request.Body = http.MaxBytesReader(x.Writer, x.Request.Body, kernel.SmallBody)
	decide := map[string]func() error{
		"pay": func() error { _, err := a.Billing.PayCheckout(x.Context(), x.Request.PathValue("secret")); return err },
		"cancel": func() error {
			_, err := a.Billing.CancelCheckout(x.Context(), x.Request.PathValue("secret"))
			return err
		},
	}[x.Request.PostFormValue("decision")]
	if decide == nil {
		return kernel.Answer{}, fault.Invalid("the decision is neither pay nor cancel")
	}
	if err := decide(); err != nil {
		return kernel.Answer{}, err
	}
	here := x.Base() + "/checkout/" + x.Request.PathValue("secret")
	return kernel.Answer{Status: http.StatusSeeOther, Media: "text/plain", Raw: []byte{}}.With("Location", here), nil
}

// ShowInvoice answers GET /invoices/{secret}.
func (a *API) ShowInvoice(x *kernel.Exchange) (kernel.Answer, error) {
	secret, pdf := strings.CutSuffix(x.Request.PathValue("secret"), ".pdf")
	i, err := a.Billing.Invoice(x.Context(), secret, x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	v := billing.InvoiceView{
		Number: i.Number, IssuedAt: i.CreatedAt, PaidAt: i.PaidAt, TeamName: i.TeamName, BuyerEmail: i.BuyerEmail,
		Description: i.Description, Credits: i.Credits, Amount: i.Amount, Refunded: i.Refunded, Currency: i.Currency,
		PDFURL: i.PDFURL, ReturnURL: x.Base() + "/billing",
	}
	if pdf {
		file, err := a.Pages.InvoicePDF(v)
		name := `attachment; filename="` + i.Number + `.pdf"`
		return kernel.Answer{Media: "application/pdf", Raw: file}.With("Content-Disposition", name), err
	}
	html, err := a.Pages.InvoicePage(v)
	if err != nil {
		return kernel.Answer{}, err
	}
	return x.HTML(html)
}
