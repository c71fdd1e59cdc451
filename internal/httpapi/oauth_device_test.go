package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/identity/builtin"
)

var userCode = regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`)

func TestADeviceIsLetIn(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		start := func() (device, user string) {
			r := h.post("/oauth/device_authorization", url.Values{"client_id": {"millrace-cli"}}).want(200)
			if !userCode.MatchString(r.text("user_code")) || r.text("verification_uri") != base+"/device" {
				t.Error(r.body)
			}
			return r.text("device_code"), r.text("user_code")
		}
		poll := func(device string) reply {
			return h.post("/oauth/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {"millrace-cli"}, "device_code": {device}})
		}
		device, user := start()
		poll(device).refused(400, "authorization_pending")
		poll(device).refused(400, "slow_down")
		h.pass(6 * time.Second)
		poll(device).refused(400, "slow_down") // ten seconds now, and then fifteen
		h.pass(16 * time.Second)
		poll(device).refused(400, "authorization_pending")

		h.call("GET", "/device?user_code="+user, "").want(303)
		typed := strings.ToLower(strings.ReplaceAll(user, "-", " "))
		if r := h.call("GET", "/device?user_code="+url.QueryEscape(typed), "", cookie(ada.secret)).want(200); !strings.Contains(r.body, "Millrace command line") {
			t.Errorf("%.300s", r.body)
		}
		yes := url.Values{"user_code": {typed}, "decision": {"allow"}}
		h.post("/device", yes).want(401)
		h.post("/device", yes, bearer(ada.token)).want(401)
		h.post("/device", yes, cookie(ada.secret), header("Origin", "https://evil.example")).want(403)
		h.post("/device", yes, cookie(ada.secret)).want(200)
		h.post("/device", yes, cookie(ada.secret)).want(404)
		h.pass(16 * time.Second)
		h.call("GET", "/api/me", "", bearer(poll(device).want(200).text("access_token"))).want(200)
		h.pass(16 * time.Second)
		poll(device).refused(400, "invalid_grant")

		device, user = start()
		h.post("/device", url.Values{"user_code": {user}, "decision": {"deny"}}, cookie(ada.secret)).want(200)
		poll(device).refused(400, "access_denied")
		device, user = start()
		h.pass(16 * time.Minute)
		poll(device).refused(400, "expired_token")
		h.post("/device", url.Values{"user_code": {user}, "decision": {"allow"}}, cookie(ada.secret)).want(404)
		poll("nobody").refused(400, "invalid_grant")
	})
}

func TestGuessingDeviceCodesIsSlowed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for range 10 {
		h.call("GET", "/device?user_code=BCDF-GHJK", "", cookie(ada.secret)).want(200)
	}
	h.call("GET", "/device?user_code=BCDF-GHJK", "", cookie(ada.secret)).want(429)
}

// A program that registered itself chose its own name, and nobody has checked it. It
// signs people in by a browser, where they see where their answer goes.
func TestSelfRegisteredClientsGetNoDeviceGrant(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		id := h.call("POST", "/oauth/register", `{"client_name":"Millrace command line","redirect_uris":["http://127.0.0.1/"]}`).want(201).text("client_id")
		h.post("/oauth/device_authorization", url.Values{"client_id": {id}}).refused(400, "unauthorized_client")
		// One that was begun before this was refused leads nowhere.
		now := h.clock()
		d := builtin.Device{DeviceHash: "hash", UserHash: sum("BCDFGHJK"), Client: id, State: builtin.DeviceOpen, PolledAt: now, ExpiresAt: now.Add(time.Minute)}
		if err := h.db.InsertDevice(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if r := h.call("GET", "/device?user_code=BCDF-GHJK", "", cookie(ada.secret)).want(200); !strings.Contains(r.body, "No device is waiting for this code") {
			t.Errorf("%.300s", r.body)
		}
		h.post("/device", url.Values{"user_code": {"BCDF-GHJK"}, "decision": {"allow"}}, cookie(ada.secret)).want(404)
		h.post("/oauth/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {id}, "device_code": {"any"}}).refused(400, "unauthorized_client")
	})
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}
