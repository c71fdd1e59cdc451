package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
)

// margin is how long before its end a token is taken for ended: it must live
// through the call.
const margin = 30 * time.Second

// keptToken is the token of the credentials file. It is renewed before it
// ends, by the session's cookie or by OAuth's refresh token.
type keptToken struct {
	World
	keep   credentials
	server string
	grant  grant
}

func (k *keptToken) token(ctx context.Context) (string, error) {
	if k.grant.renewable() && !k.grant.Expires.IsZero() && k.Now().Add(margin).After(k.grant.Expires) {
		return k.renewed(ctx, k.grant.Token)
	}
	return k.grant.Token, nil
}

func (k *keptToken) renewed(ctx context.Context, refused string) (string, error) {
	err := k.keep.update(func(ring *keyring) error {
		kept := ring.Servers[k.server]
		if kept == nil {
			return fmt.Errorf("not signed in to %s: run millrace login", k.server)
		}
		if kept.Token == refused && kept.renewable() { // else another process was first
			if err := renew(ctx, k.World, k.server, kept); err != nil {
				return err
			}
		}
		k.grant = *kept
		return nil
	})
	return k.grant.Token, err
}

// renew puts a fresh token into g.
func renew(ctx context.Context, w World, server string, g *grant) error {
	c, err := client.New(server, client.WithHTTPClient(checked{httpClient()}))
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
func (g *grant) accept(t api.OAuthToken, now time.Time) {
	g.Token, g.Expires = t.AccessToken, now.Add(time.Duration(t.ExpiresIn)*time.Second)
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
}

func signInEnded(err error) error {
	if e, refused := errors.AsType[*client.Error](err); refused && e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests {
		return errors.New("your sign-in has ended: run millrace login")
	}
	return err
}
