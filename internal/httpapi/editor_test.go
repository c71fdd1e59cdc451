package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/domain/access"
)

// upgrade tries to open a socket and returns how it was answered.
func upgrade(t *testing.T, server *httptest.Server, path, origin string) (*websocket.Conn, int) {
	t.Helper()
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	ws, resp, err := websocket.Dial(t.Context(), server.URL+path, &websocket.DialOptions{HTTPHeader: h})
	if err == nil {
		t.Cleanup(func() { _ = ws.CloseNow() })
		return ws, http.StatusSwitchingProtocols
	}
	if resp == nil {
		t.Fatal(err)
	}
	return nil, resp.StatusCode
}

func TestTheEditorChecksBeforeItUpgrades(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		server := httptest.NewServer(h.mux)
		defer server.Close()
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		wf := h.runnable(ada)
		room := func(who someone, wf string) (name, token string) {
			got := h.call("POST", "/api/collab/token", `{"workflowId":"`+wf+`"}`, bearer(who.token)).want(200)
			return got.text("data", "room"), got.text("data", "token")
		}
		name, token := room(ada, wf)
		otherName, otherToken := room(eve, h.runnable(eve))
		body, signature, _ := strings.Cut(token, ".")
		for what, try := range map[string]struct {
			path, origin string
			want         int
		}{
			"no token":               {"/editor/" + name, "", 401},
			"no token at all":        {"/editor/" + name + "?token=", "", 401},
			"a tampered token":       {"/editor/" + name + "?token=" + body + "A." + signature, "", 401},
			"a session token":        {"/editor/" + name + "?token=" + ada.token, "", 401},
			"another room's token":   {"/editor/" + name + "?token=" + otherToken, "", 403},
			"another team's room":    {"/editor/" + otherName + "?token=" + token, "", 403},
			"a foreign page":         {"/editor/" + name + "?token=" + token, "https://evil.example", 403},
			"a page that hides":      {"/editor/" + name + "?token=" + token, "null", 403},
			"no browser":             {"/editor/" + name + "?token=" + token, "", 101},
			"the first of our pages": {"/editor/" + name + "?token=" + token, base, 101},
			"the other":              {"/editor/" + name + "?token=" + token, cloud, 101},
		} {
			if _, got := upgrade(t, server, try.path, try.origin); got != try.want {
				t.Errorf("%s: %d, want %d", what, got, try.want)
			}
		}
		h.call("GET", "/editor/"+name+"?token="+token, "").want(400)
		if strings.Contains(h.log.String(), token) {
			t.Error("the log has the token")
		}
		invite := h.shareOf(ada, wf, "viewer")
		guest := h.enter(invite.text("data", "token")).want(200).text("data", "roomToken")
		if _, got := upgrade(t, server, "/editor/"+name+"?token="+guest, base); got != 101 {
			t.Errorf("a guest: %d", got)
		}
		h.call("DELETE", "/api/collab/invites?id="+invite.text("data", "id"), "", bearer(ada.token)).want(200)
		if _, got := upgrade(t, server, "/editor/"+name+"?token="+guest, base); got != 403 {
			t.Errorf("a guest whose link was revoked: %d", got)
		}
		h.pass(time.Hour)
		if _, got := upgrade(t, server, "/editor/"+name+"?token="+token, ""); got != 401 {
			t.Errorf("an expired token: %d", got)
		}
	})
}

func TestWhoIsRemovedLeavesTheRoom(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	server := httptest.NewServer(w.mux)
	defer server.Close()
	host, who := w.team(access.Member)
	got := w.call("POST", "/api/collab/token", `{"workflowId":"`+w.runnable(host)+`"}`, bearer(who.token), header("X-Team-Id", string(host.team))).want(200)
	ws, status := upgrade(t, server, "/editor/"+got.text("data", "room")+"?token="+got.text("data", "token"), "")
	if status != 101 {
		t.Fatal(status)
	}
	w.call("DELETE", "/auth/teams/"+string(host.team)+"/members/"+string(who.id), "", bearer(host.token)).want(200)
	for {
		if _, _, err := ws.Read(t.Context()); err != nil {
			if websocket.CloseStatus(err) != 4403 {
				t.Error(err)
			}
			return
		}
	}
}
