package runs

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestAnAddressIsGoodAsItWasSignedAndInTime(t *testing.T) {
	t.Parallel()
	key, now := []byte("a key of the server"), time.Unix(1_800_000_000, 0)
	report := signedReport{Blob: "teams/t/x", Name: "report.html", Size: 3, Mark: "m", Expires: now.Unix() + 60}
	token := report.Token(key)
	if got, err := readReportToken(key, token, now); err != nil || got != report {
		t.Fatalf("%+v, %v", got, err)
	}
	body, seal, _ := strings.Cut(token, ".")
	other := signedReport{Blob: "teams/other/x", Name: "report.html", Expires: report.Expires}
	otherBody, _, _ := strings.Cut(other.Token(key), ".")
	for name, tt := range map[string]struct {
		key   []byte
		token string
		at    time.Time
	}{
		"of another key":      {[]byte("another key"), token, now},
		"without its seal":    {key, body, now},
		"with an empty seal":  {key, body + ".", now},
		"with a shorter seal": {key, body + "." + seal[:20], now},
		"of another body":     {key, otherBody + "." + seal, now},
		"signed by nobody":    {key, base64.RawURLEncoding.EncodeToString([]byte(`{"b":"x"}`)) + "." + seal, now},
		"nothing":             {key, "", now},
		"no base64":           {key, "%%%." + seal, now},
		"with more after it":  {key, token + "A", now},
		"at its end":          {key, token, now.Add(time.Minute)},
		"long after":          {key, token, now.AddDate(1, 0, 0)},
	} {
		if got, err := readReportToken(tt.key, tt.token, tt.at); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestWhichOutputsArePages(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"r.html": true, "r.HTM": true, "r.html.gz": false, "html": false, "r.csv": false, "": false,
	} {
		if isReport(name, "application/octet-stream") != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if !isReport("r", "text/html; charset=utf-8") || isReport("r", "text/html-ish") {
		t.Error("its type is read wrongly")
	}
}
