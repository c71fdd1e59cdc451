package line

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

const (
	clientID  = "millrace-cli" // built into every server
	loginTime = 10 * time.Minute
)

// InBrowser asks in the browser: authorization code with PKCE, answered to
// a port of this machine (RFC 8252).
func InBrowser(w screen.Console, server string) (Grant, error) {
	ctx, cancel := context.WithTimeout(w.Ctx, loginTime)
	defer cancel()
	// A server that does not speak OAuth says so now rather than in the browser.
	if err := speaksOAuth(ctx, server); err != nil {
		return Grant{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Grant{}, fmt.Errorf("cannot listen for the browser (%w): try millrace login --device", err)
	}
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	back := "http://" + listener.Addr().String() + "/callback"
	answers := make(chan callback, 1)
	page := &http.Server{Handler: callbacks(state, answers), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() { defer close(served); _ = page.Serve(listener) }() // ends with Shutdown
	defer func() {
		// The browser is to see its last page, though not for ever.
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer stop()
		_ = page.Shutdown(last)
		<-served
	}()
	address := authorizeURL(server, back, state, verifier)
	w.Tell("Sign in with your browser:\n\n  %s\n", address)
	if err := w.Browse(address); err != nil {
		if !w.Interactive() {
			return Grant{}, fmt.Errorf("couldn't open a browser (%w): run millrace login --device", err)
		}
		w.Tell("Couldn't open a browser. Open the URL yourself, or stop and run millrace login --device.")
	}
	select {
	case <-ctx.Done():
		if err := w.Ctx.Err(); err != nil {
			return Grant{}, err
		}
		return Grant{}, errors.New("sign-in timed out: run millrace login again")
	case a := <-answers:
		if a.err != nil {
			return Grant{}, a.err
		}
		return exchange(ctx, w, server, api.OAuthTokenRequest{
			GrantType: api.OAuthTokenRequestGrantTypeAuthorizationCode, ClientID: clientID, Code: &a.code, CodeVerifier: &verifier, RedirectURI: &back,
		})
	}
}

func speaksOAuth(ctx context.Context, server string) error {
	c, err := client.New(server, client.WithHTTPClient(Checked{HTTPClient()}))
	if err != nil {
		return err
	}
	_, err = c.GetOAuthMetadataWithResponse(ctx)
	if e, refused := errors.AsType[*client.Error](err); refused && (e.Status == http.StatusNotFound || e.Status == http.StatusNotImplemented) {
		return Explained{err, "sign in with millrace login --email <address> or --token-stdin"}
	}
	return err
}

func authorizeURL(server, back, state, verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return server + "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {back}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode()
}

// callback is how the browser came back.
type callback struct {
	code string
	err  error
}

// callbacks takes the browser's answer, once, and only with our state: any
// page can send a browser to a port of this machine.
func callbacks(state string, answers chan<- callback) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintln(w, "This response doesn't belong to the sign-in in progress.")
			return
		}
		a := callback{code: q.Get("code")}
		switch {
		case q.Get("error") == "access_denied":
			a.err = errors.New("access was denied in the browser")
		case q.Get("error") != "":
			a.err = fmt.Errorf("the server refused: %s %s", screen.Clean(q.Get("error")), screen.Clean(q.Get("error_description")))
		case a.code == "":
			a.err = errors.New("the browser returned no code: run millrace login again")
		}
		select {
		case answers <- a:
		default: // a reload of the page
		}
		if a.err != nil {
			fmt.Fprintln(w, "Sign-in failed. See the terminal for details. You can close this page.")
			return
		}
		fmt.Fprintln(w, "Signed in. Return to the terminal. You can close this page.")
	})
	return mux
}

// OnDevice asks on another device, for machines without a browser (RFC 8628).
func OnDevice(w screen.Console, server string) (Grant, error) {
	c, err := client.New(server, client.WithHTTPClient(Checked{HTTPClient()}))
	if err != nil {
		return Grant{}, err
	}
	r, err := c.AuthorizeDeviceWithFormdataBodyWithResponse(w.Ctx, api.DeviceAuthorizationRequest{ClientID: clientID})
	if err != nil {
		return Grant{}, err
	}
	d := r.JSON200
	w.Tell("On any device, open\n\n  %s\n\nand enter the code  %s\n", screen.Clean(d.VerificationURI), screen.Clean(d.UserCode))
	pause := time.Duration(max(d.Interval, 1)) * time.Second
	for end := w.Now().Add(time.Duration(d.ExpiresIn) * time.Second); w.Now().Before(end); {
		if err := w.Sleep(w.Ctx, pause); err != nil {
			return Grant{}, err
		}
		g, err := exchange(w.Ctx, w, server, api.OAuthTokenRequest{
			GrantType: api.OAuthTokenRequestGrantTypeUrnIetfParamsOauthGrantTypeDeviceCode, ClientID: clientID, DeviceCode: &d.DeviceCode,
		})
		if err == nil {
			return g, nil
		}
		e, refused := errors.AsType[*client.Error](err)
		switch {
		case !refused, e.Status >= http.StatusInternalServerError && e.Code != "not_built", e.Code == "authorization_pending":
		case e.Code == "slow_down", e.Status == http.StatusTooManyRequests:
			pause += 5 * time.Second
		case e.Code == "access_denied":
			return Grant{}, errors.New("access was denied on the other device")
		case e.Code == "expired_token":
			return Grant{}, errors.New("the code has expired: run millrace login --device again")
		default:
			return Grant{}, err
		}
	}
	return Grant{}, errors.New("the code has expired: run millrace login --device again")
}

// exchange turns a grant of OAuth into tokens. It is never tried twice: a code
// works once.
func exchange(ctx context.Context, w screen.Console, server string, in api.OAuthTokenRequest) (Grant, error) {
	c, err := client.New(server, client.WithHTTPClient(Checked{HTTPClient()}))
	if err != nil {
		return Grant{}, err
	}
	r, err := c.ExchangeTokenWithFormdataBodyWithResponse(ctx, in)
	if err != nil {
		return Grant{}, err
	}
	var g Grant
	g.accept(*r.JSON200, w.Now())
	return g, nil
}

// SignOut ends a sign-in at the server. A token that was handed in belongs to
// somebody else's session and is left alone.
func SignOut(w screen.Console, server string, g Grant) error {
	c, err := client.New(server, client.WithHTTPClient(HTTPClient()))
	if err != nil {
		return err
	}
	switch {
	case g.Cookie != "":
		_, err = c.SignOutWithResponse(w.Ctx, withCookie(g.Cookie))
	case g.Refresh != "":
		id := clientID
		_, err = c.RevokeTokenWithFormdataBodyWithResponse(w.Ctx, api.OAuthRevocation{Token: g.Refresh, ClientID: &id})
	}
	if e, refused := errors.AsType[*client.Error](err); refused && e.Status == http.StatusUnauthorized {
		return nil // it had ended already
	}
	return err
}
