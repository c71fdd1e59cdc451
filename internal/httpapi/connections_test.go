package httpapi_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

const (
	theirKey    = "AKIAVERYSECRETID"
	theirSecret = "wJalrXUtnFEMI-K7MDENG-bPxRfiCY"
)

// noneOf fails where a text has a secret, plain or encoded.
func noneOf(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
			if strings.Contains(text, form) {
				t.Errorf("%s has %s: %s", what, form, text)
			}
		}
	}
}

func TestConnectionsAreSealedAndNeverShown(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		as := bearer(ada.token)
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `<Error><Code>AccessDenied</Code><Message>%s</Message></Error>`, r.Header.Get("Authorization"))
		}))
		defer elsewhere.Close()
		made := h.call("POST", "/api/connections", `{"name":"lab","type":"s3","endpoint":"`+elsewhere.URL+`","bucket":"lab","prefix":"reads","accessKey":"`+theirKey+`","secretKey":"`+theirSecret+`"}`, as).want(201)
		id := made.text("data", "id")
		if made.text("data", "hint") != "fiCY" || made.at("data", "test", "ok") != false || made.text("data", "prefix") != "reads/" || !strings.HasPrefix(id, "conn_") {
			t.Error(made.body)
		}
		for name, text := range map[string]string{
			"creation": made.body, "list": h.call("GET", "/api/connections", "", as).want(200).body,
			"test":   h.call("POST", "/api/connections/"+id+"/test", "", as).want(200).body,
			"browse": h.call("GET", "/api/connections/"+id+"/objects", "", as).wantCode(400, "connection_failed").body,
			"export": h.call("GET", "/api/account/data", "", as).want(200).body,
		} {
			noneOf(t, name, text, theirKey, theirSecret)
		}
		h.call("GET", "/api/connections/"+id+"/objects?prefix=others/", "", as).wantCode(403, "outside_prefix")
		if r := h.call("GET", "/api/connections", "", bearer(eve.token)).want(200); len(r.at("data").([]any)) != 0 {
			t.Errorf("another team sees %s", r.body)
		}
		for _, c := range []struct{ method, path string }{{"POST", "/test"}, {"GET", "/objects"}, {"DELETE", ""}} {
			h.call(c.method, "/api/connections/"+id+c.path, "", bearer(eve.token)).want(404)
		}
		h.call("DELETE", "/api/connections/"+id, "", as).want(200)
		h.call("DELETE", "/api/connections/"+id, "", as).want(404)
	})
}

// journal is a log that a test reads while others write.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func TestNoLogHasACredential(t *testing.T) {
	var log journal
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	as := bearer(h.signUp("Ada").token)
	for _, more := range []string{`"type":"s3","bucket":"lab","endpoint":"http://127.0.0.1:1"`, `"type":"s3","bucket":"?"`, `"type":"ftp"`} {
		h.call("POST", "/api/connections", `{"name":"lab",`+more+`,"accessKey":"`+theirKey+`","secretKey":"`+theirSecret+`"}`, as)
	}
	if !strings.Contains(log.String(), "/api/connections") {
		t.Error("nothing was logged")
	}
	noneOf(t, "the log", log.String(), theirKey, theirSecret)
}

func TestAConnectionThatIsUsedStays(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		as := bearer(h.signUp("Ada").token)
		id := h.call("POST", "/api/connections", `{"name":"lab","type":"https","host":"127.0.0.1:1","token":"t"}`, as).want(201).text("data", "id")
		w := h.call("POST", "/api/workflows", `{"name":"w","definition":{"x-source":{"connection":"`+id+`"}}}`, as).want(201).text("data", "id")
		h.call("DELETE", "/api/connections/"+id, "", as).wantCode(409, "connection_in_use")
		h.call("POST", "/api/connections/"+id+"/test", "", as).want(200)
		h.call("DELETE", "/api/workflows/"+w, "", as).want(200)
		w = h.call("POST", "/api/workflows", `{"name":"w","definition":{"parameters":{"from":{"type":"string","default":""}},"nodes":[{"id":"a","command":"true"}]}}`, as).want(201).text("data", "id")
		h.call("POST", "/api/workflows/"+w+"/schedules", `{"cron":"0 6 * * *","timeZone":"UTC","parameters":{"from":"`+id+`"}}`, as).want(201)
		h.call("DELETE", "/api/connections/"+id, "", as).wantCode(409, "connection_in_use")
		h.call("DELETE", "/api/workflows/"+w, "", as).want(200)
		h.call("DELETE", "/api/connections/"+id, "", as).want(200)
	})
}

func TestATeamHasAtMostFiftyConnections(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	as := bearer(h.signUp("Ada").token)
	// One that answers: a host that does not is asked again and again.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer elsewhere.Close()
	body := `{"name":"lab","type":"s3","endpoint":"` + elsewhere.URL + `","bucket":"lab"}`
	for range 50 {
		h.call("POST", "/api/connections", body, as).want(201)
	}
	h.call("POST", "/api/connections", body, as).wantCode(409, "too_many_connections")
	r := h.call("POST", "/api/connections", `{"name":"","type":"s3","bucket":"?"}`, as).want(400)
	if details := r.at("details").([]any); len(details) != 2 {
		t.Error(r.body)
	}
	h.call("POST", "/api/connections", `{"name":"x","type":"s3","bucket":"lab","color":"red"}`, as).want(400)
}

// bucket connects a team to a real bucket. Without one the test is skipped, except in
// CI, where nothing may be missed.
func (h *harness) bucket(as change, prefix string) (name, connection string) {
	h.t.Helper()
	address := os.Getenv("MILLRACE_TEST_S3")
	if address == "" {
		if os.Getenv("CI") != "" {
			h.t.Fatal("MILLRACE_TEST_S3 is not set: use `make test`")
		}
		h.t.Skip("MILLRACE_TEST_S3 is not set: scripts/with-s3 starts a server")
	}
	u, err := url.Parse(address)
	if err != nil {
		h.t.Fatal(err)
	}
	q := u.Query()
	made := h.call("POST", "/api/connections", fmt.Sprintf(`{"name":"lab","type":"s3","endpoint":%q,"region":%q,"bucket":%q,"prefix":%q,"accessKey":%q,"secretKey":%q}`,
		q.Get("endpoint"), q.Get("region"), u.Host, prefix, q.Get("access-key"), q.Get("secret-key")), as).want(201)
	if made.at("data", "test", "ok") != true {
		h.t.Fatal(made.body)
	}
	return u.Host, made.text("data", "id")
}

func TestABucketIsBrowsed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	as := bearer(h.signUp("Ada").token)
	_, id := h.bucket(as, "")
	path := "/api/connections/" + id + "/objects"
	h.call("GET", path, "", as).want(200)
	h.call("GET", path+"?prefix=nothing-here/", "", as).want(200)
	h.call("GET", path+"?cursor=", "", as).want(400)
}
