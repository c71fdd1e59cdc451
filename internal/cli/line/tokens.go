package line

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

// margin is how long before its end a token is taken for ended: it must live
// through the call.
const margin = 30 * time.Second

// KeptToken is the token of the credentials file. It is renewed before it
// ends, by the session's cookie or by OAuth's refresh token.
type KeptToken struct {
	screen.Console
	Keep   Credentials
	Server string
	Grant  Grant
}

func (k *KeptToken) token(ctx context.Context) (string, error) {
	if k.Grant.renewable() && !k.Grant.Expires.IsZero() && k.Now().Add(margin).After(k.Grant.Expires) {
		return k.renewed(ctx, k.Grant.Token)
	}
	return k.Grant.Token, nil
}

func (k *KeptToken) renewed(ctx context.Context, refused string) (string, error) {
	err := k.Keep.Update(func(ring *Keyring) error {
		kept := ring.Servers[k.Server]
		if kept == nil {
			return fmt.Errorf("not signed in to %s: run millrace login", k.Server)
		}
		if kept.Token == refused && kept.renewable() { // else another process was first
			if err := renew(ctx, k.Console, k.Server, kept); err != nil {
				return err
			}
		}
		k.Grant = *kept
		return nil
	})
	return k.Grant.Token, err
}

// renew puts a fresh token into g.
func renew(ctx context.Context, w screen.Console, server string, g *Grant) error {
	c, err := client.New(server, client.WithHTTPClient(Checked{HTTPClient()}))
	if err != nil {
		return err
	}
	if g.Cookie != "" {
		r, err := c.CreateSessionTokenWithResponse(ctx, withCookie(g.Cookie))
		if err != nil {
			return signInEnded(err)
		}
		g.Token, g.Expires = r.JSON200.Data.Token, r.JSON200.Data.ExpiresAt.Time
		return nil
	}
	r, err := c.ExchangeTokenWithFormdataBodyWithResponse(ctx, api.OAuthTokenRequest{
		GrantType: api.OAuthTokenRequestGrantTypeRefreshToken, ClientID: clientID, RefreshToken: &g.Refresh,
	})
	if err != nil {
		return signInEnded(err)
	}
	g.accept(*r.JSON200, w.Now())
	return nil
}

func withCookie(cookie string) client.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Cookie", cookie)
		return nil
	}
}

// accept takes what the OAuth server handed out.
func (g *Grant) accept(t api.OAuthToken, now time.Time) {
	g.Token, g.Expires = t.AccessToken, now.Add(time.Duration(t.ExpiresIn)*time.Second)
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
}

func signInEnded(err error) error {
	if e, refused := errors.AsType[*client.Error](err); refused && e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests {
		return errors.New("your session has expired: run millrace login")
	}
	return err
}

// GivenToken is a token from the environment; nothing renews it.
type GivenToken string

func (t GivenToken) token(context.Context) (string, error)           { return string(t), nil }
func (t GivenToken) renewed(context.Context, string) (string, error) { return string(t), nil }
