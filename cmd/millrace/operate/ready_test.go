package operate

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReadySaysWhatTheServerSays(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/well" {
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	var out bytes.Buffer
	w := Console{Ctx: t.Context(), Out: &out}
	if err := (&Ready{Address: s.URL + "/well"}).Run(w); err != nil || out.String() != "ready\n" {
		t.Error(out.String(), err)
	}
	for address, want := range map[string]string{s.URL + "/ill": "503 Service Unavailable: the database does not answer", "http://127.0.0.1:1": "refused"} {
		if err := (&Ready{Address: address}).Run(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
