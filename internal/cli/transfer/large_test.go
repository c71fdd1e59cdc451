package transfer_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// uploads is a server with one upload of parts of three bytes, as the API has them.
type uploads struct {
	t *testing.T

	mu       sync.Mutex
	begun    int
	there    map[int]string // the parts that have arrived
	sent     []int          // the parts of this test, in their order
	bucket   bool           // addresses are those of a bucket
	unsigned bool           // it gives no addresses
	part     map[int]int    // the status of a part, in place of 200
	size     int64          // that the server has noted, where it is another
	state    int            // the status of what is asked about the upload, in place of 200
	complete []string       // what completing answers, one after the other; then it is done
	asked    int            // to complete
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		u.put(w, r)
	case r.URL.Path == "/api/files/uploads":
		u.begun++
		u.there = map[int]string{}
		clitest.Answer(w, 201, fmt.Sprintf(`{"success":true,"data":{"uploadId":"up_%d","key":"k","partSize":3,"partCount":4,"expiresAt":"2099-01-01T00:00:00.000Z"}}`, u.begun))
	case strings.HasSuffix(r.URL.Path, "/parts"):
		var asked struct{ Numbers []int }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		clitest.Answer(w, 200, `{"success":true,"data":[`+u.signed(r.Host, asked.Numbers)+`]}`)
	case strings.HasSuffix(r.URL.Path, "/complete"):
		u.finish(w, r)
	case u.state != 0:
		clitest.Answer(w, u.state, `{"success":false,"error":"no such upload","code":"x","requestId":"r"}`)
	default:
		var parts []string
		for n, text := range u.there {
			parts = append(parts, fmt.Sprintf(`{"number":%d,"size":%d,"etag":"e"}`, n, len(text)))
		}
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"uploadId":%q,"key":"k","partSize":3,"partCount":4,"size":%d,"filename":"f","contentType":"c","expiresAt":"2099-01-01T00:00:00.000Z","parts":[%s]}}`,
			filepath.Base(r.URL.Path), max(u.size, 10), strings.Join(parts, ",")))
	}
}

func (u *uploads) signed(host string, numbers []int) string {
	if u.unsigned {
		return ""
	}
	var list []string
	for _, n := range numbers {
		address := fmt.Sprintf("http://%s/put/%d?signature=secret", host, n)
		if u.bucket {
			address += "&X-Amz-Signature=1"
		}
		list = append(list, fmt.Sprintf(`{"number":%d,"size":3,"url":%q,"method":"PUT","expiresAt":"2099-01-01T00:00:00.000Z"}`, n, address))
	}
	return strings.Join(list, ",")
}

func (u *uploads) put(w http.ResponseWriter, r *http.Request) {
	var number int
	_, _ = fmt.Sscanf(r.URL.Path, "/put/%d", &number)
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.sent = append(u.sent, number)
	h, want := md5.Sum(text), ""
	if u.bucket { // which would take half a part for the whole
		want = base64.StdEncoding.EncodeToString(h[:])
	}
	if got := r.Header.Get("Content-MD5"); got != want || r.Header.Get("Authorization") != "" {
		u.t.Errorf("part %d comes with %q, %v", number, got, r.Header)
	}
	if status := u.part[number]; status != 0 {
		w.WriteHeader(status)
		return
	}
	u.there[number] = string(text)
}

func (u *uploads) finish(w http.ResponseWriter, r *http.Request) {
	u.asked++
	if u.asked <= len(u.complete) {
		status, code, _ := strings.Cut(u.complete[u.asked-1], " ")
		var n int
		_, _ = fmt.Sscan(status, &n)
		clitest.Answer(w, n, fmt.Sprintf(`{"success":false,"error":"it is %s","code":%q,"requestId":"r"}`, code, code))
		return
	}
	var said struct{ SHA256 string }
	_ = json.NewDecoder(r.Body).Decode(&said)
	clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"key":"k","name":"reads.fq","source":"upload","size":10,"sha256":%q}}`, said.SHA256))
}

// send uploads a file of ten bytes, and gives the notes that are left of it. Whatever was on
// its way has arrived then.
func (u *uploads) send(d *clitest.Terminal, f *os.File) (api.File, []string, error) {
	u.t.Helper()
	server := httptest.NewServer(u)
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		u.t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		u.t.Fatal(err)
	}
	done, err := transfer.Large{Console: d.Console, HTTP: http.DefaultClient, API: c, Server: "here", ContentType: "text/plain"}.Put(f, info)
	notes, globErr := filepath.Glob(filepath.Join(d.Folder, "uploads", "*"))
	if globErr != nil {
		u.t.Fatal(globErr)
	}
	return done, notes, err
}

// What has arrived of a large file is not sent again, by whichever program goes on.
func TestAnUploadInPartsGoesOnWhereItBrokeOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(u *uploads) // the second program
		begun  int
		sent   string // by the second
		fails  string
		notes  int
	}{
		"with what is missing":               {nil, 1, "[2]", "", 0},
		"from the start, if it is forgotten": {func(u *uploads) { u.state = 404 }, 2, "[1 2 3 4]", "", 0},
		"from the start, if it is another":   {func(u *uploads) { u.size = 11 }, 2, "[1 2 3 4]", "", 0},
		"later, if nobody knows":             {func(u *uploads) { u.state = 503 }, 1, "[]", "no such upload", 1},
		"after signing in":                   {func(u *uploads) { u.state = 401 }, 1, "[]", "no such upload", 1},
		"with nothing but the end":           {func(u *uploads) { u.there[2] = "345" }, 1, "[]", "", 0},
		"never, if it is refused":            {func(u *uploads) { u.complete = []string{"400 hash_mismatch"} }, 1, "[2]", "it is hash_mismatch", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &uploads{t: t, part: map[int]int{2: http.StatusBadRequest}}
			d, f := clitest.New(t), local(t, digits)
			_, notes, err := u.send(d, f)
			if err == nil || !strings.Contains(err.Error(), "Uploaded parts are kept for 7 days: run the same command again to continue") || strings.Contains(err.Error(), "secret") || len(notes) != 1 {
				t.Fatalf("%v, notes %v", err, notes)
			}
			for n, text := range map[int]string{1: "012", 3: "678", 4: "9"} {
				u.there[n] = text // those behind the refused one may have been on their way
			}
			u.sent, u.part = nil, nil
			if tt.before != nil {
				tt.before(u)
			}
			done, notes, err := u.send(d, f)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Fatalf("%v", err)
			}
			if err == nil && (*done.Sha256 != sum(digits) || u.there[1]+u.there[2]+u.there[3]+u.there[4] != digits) {
				t.Errorf("it has %v, and says %s", u.there, *done.Sha256)
			}
			slices.Sort(u.sent)
			if got := fmt.Sprint(u.sent); got != tt.sent || u.begun != tt.begun || len(notes) != tt.notes {
				t.Errorf("parts %s were sent, %d begun, notes %v", got, u.begun, notes)
			}
		})
	}
}

// A file that was changed, and one at another place, is another upload.
func TestAnUploadInPartsIsOfOneFile(t *testing.T) {
	t.Parallel()
	u := &uploads{t: t, part: map[int]int{4: http.StatusBadRequest}}
	d, f := clitest.New(t), local(t, digits)
	for want, change := range []func(){
		func() {},
		func() {
			if err := os.Chtimes(f.Name(), time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		},
		func() { f = local(t, digits) },
	} {
		change()
		if _, notes, err := u.send(d, f); err == nil || len(notes) != want+1 || u.begun != want+1 {
			t.Errorf("%v, %d begun, notes %v", err, u.begun, notes)
		}
	}
}

// Completing takes its time, and is asked for again where that may help.
func TestAnUploadInPartsIsCompletedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []string
		asked   int
		fails   string
		notes   int
	}{
		"at once":                    {nil, 1, "", 0},
		"after others are done":      {[]string{"409 upload_busy", "409 upload_busy"}, 3, "", 0},
		"after the server came back": {[]string{"502 x", "500 x"}, 3, "", 0},
		"not, if it is damaged":      {[]string{"409 hash_mismatch"}, 1, "it is hash_mismatch", 0},
		"not for ever":               {slices.Repeat([]string{"500 broken"}, 20), 8, "it is broken", 1}, // what has arrived is still there
		"not, if somebody else is":   {[]string{"401 invalid_token"}, 1, "it is invalid_token", 1},      // until they sign in
		"not, if they may not":       {[]string{"403 not_a_member"}, 1, "it is not_a_member", 1},
		"not, if they ask too often": {[]string{"429 rate_limited"}, 1, "it is rate_limited", 1},
		"not, if a part is missing":  {[]string{"409 incomplete_upload"}, 1, "it is incomplete_upload", 0},
		"not while it is busy":       {slices.Repeat([]string{"409 upload_busy"}, 20), 8, "it is upload_busy", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &uploads{t: t, complete: tt.answers, bucket: true}
			_, notes, err := u.send(clitest.New(t), local(t, digits))
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%v", err)
			}
			slices.Sort(u.sent)
			if u.asked != tt.asked || len(notes) != tt.notes || !slices.Equal(u.sent, []int{1, 2, 3, 4}) {
				t.Errorf("it was asked %d times, notes %v, sent %v", u.asked, notes, u.sent)
			}
		})
	}
	u := &uploads{t: t, unsigned: true}
	if _, _, err := u.send(clitest.New(t), local(t, digits)); err == nil || !strings.Contains(err.Error(), "sent no upload address for a part") {
		t.Errorf("without addresses: %v", err)
	}
}
