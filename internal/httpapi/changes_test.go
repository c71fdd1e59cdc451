package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// An account that has made as many changes as it may within a day makes no more that would be
// in the audit log, but reads, deletes, revokes and signs in. Others do not notice.
func TestAnAccountMayMakeSoManyChangesADay(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := houseOn(t, url, func(o *httpapi.Options, _ *builtin.Options) { o.ChangesPerDay = 4 })
		w := &fixtures{harness: h}
		ada, bob := w.team(access.Admin) // who have made accounts, and one a team for the other
		h.pass(25 * time.Hour)
		create := func(who someone, name string) reply {
			return h.call("POST", "/api/workflows", fmt.Sprintf(`{"name":%q}`, name), cookie(who.secret), header("X-Team-Id", string(ada.team)))
		}
		var last string
		for i := range 4 {
			last = create(ada, fmt.Sprint(i)).want(http.StatusCreated).text("data", "id")
			create(ada, "").want(http.StatusBadRequest) // is no change
		}
		refused := create(ada, "one too many").wantCode(http.StatusTooManyRequests, "rate_limited")
		if after := refused.header.Get("Retry-After"); after != "21600" {
			t.Errorf("it is worth trying again after %s seconds", after)
		}
		h.call("GET", "/api/workflows/"+last, "", cookie(ada.secret)).want(http.StatusOK)
		h.call("DELETE", "/api/workflows/"+last, "", cookie(ada.secret)).want(http.StatusOK)
		h.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, ada.email)).want(http.StatusOK)
		create(bob, "of somebody else").want(http.StatusCreated)
		h.pass(6 * time.Hour)
		create(ada, "a quarter of a day later").want(http.StatusCreated)
		create(ada, "and no more").wantCode(http.StatusTooManyRequests, "rate_limited")
	})
}

// exhausted has counted as many sign-ins of every account as there may be.
type exhausted struct{ builtin.LimitStore }

func (e exhausted) TakeHit(ctx context.Context, bucket string, w limits.Window, now time.Time) (limits.Result, error) {
	if strings.HasPrefix(bucket, "sign-ins ") {
		return limits.Result{Reset: time.Minute}, nil
	}
	return e.LimitStore.TakeHit(ctx, bucket, w, now)
}

// Each sign-in leaves a session and an entry of the audit log.
func TestSignInsOfAnAccountAreCounted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(_ *httpapi.Options, o *builtin.Options) { o.Stores.Limits = exhausted{o.Stores.Limits} })
	ada := h.signUp("Ada")
	h.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, ada.email)).wantCode(http.StatusTooManyRequests, "rate_limited")
	h.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":%q,"password":"wrong horse"}`, ada.email)).want(http.StatusUnauthorized)
	h.call("GET", "/api/me", "", cookie(ada.secret)).want(http.StatusOK)
}
