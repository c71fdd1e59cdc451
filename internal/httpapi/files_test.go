package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
)

// uploaded is a file that went all the way.
type uploaded struct{ key, url string }

func (h *harness) presign(who someone, name, contentType string, size int) reply {
	h.t.Helper()
	return h.call("POST", "/api/files/presign", fmt.Sprintf(`{"filename":%q,"contentType":%q,"size":%d}`, name, contentType, size), bearer(who.token))
}

// put sends bytes to a signed address, as a browser would.
func (h *harness) put(address, contentType, body string, changes ...change) reply {
	h.t.Helper()
	return h.raw("PUT", address, body, append([]change{header("Content-Type", contentType)}, changes...)...)
}

// raw sends a request to an absolute address.
func (h *harness) raw(method, address, body string, changes ...change) reply {
	h.t.Helper()
	r := httptest.NewRequest(method, address, strings.NewReader(body))
	for _, c := range changes {
		c(r)
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	return reply{t: h.t, status: w.Code, header: w.Header(), body: w.Body.String()}
}

func (h *harness) upload(who someone, name, contentType, body string) uploaded {
	h.t.Helper()
	r := h.presign(who, name, contentType, len(body)).want(200)
	h.put(r.text("data", "url"), contentType, body).want(200)
	return uploaded{r.text("data", "key"), r.text("data", "url")}
}

func (h *harness) files(who someone) []map[string]any {
	h.t.Helper()
	var list []map[string]any
	for _, f := range h.call("GET", "/api/files", "", bearer(who.token)).want(200).at("data").([]any) {
		list = append(list, f.(map[string]any))
	}
	return list
}

func (h *harness) stored(who someone) float64 {
	h.t.Helper()
	return h.call("GET", "/api/billing/credits", "", bearer(who.token)).want(200).at("storage", "usedBytes").(float64)
}

func TestAFileEndToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		const body = "sample,reads\na,1\n"
		p := h.presign(ada, "räksmörgås 1.csv", "text/csv", len(body)).want(200)
		if p.text("data", "method") != "PUT" || !strings.HasPrefix(p.text("data", "url"), base) {
			t.Errorf("%s", p.body)
		}
		if len(h.files(ada)) != 0 || h.stored(ada) != float64(len(body)) {
			t.Error("a reservation is listed, or not counted")
		}
		h.put(p.text("data", "url"), "text/csv", body).want(200)
		list := h.files(ada)
		if len(list) != 1 || list[0]["key"] != p.text("data", "key") || list[0]["name"] != "räksmörgås 1.csv" || list[0]["source"] != "upload" || list[0]["runId"] != nil {
			t.Fatalf("%v", list)
		}
		sum := sha256.Sum256([]byte(body))
		if list[0]["sha256"] != hex.EncodeToString(sum[:]) {
			t.Errorf("sha256 is %v", list[0]["sha256"])
		}
		address := list[0]["url"].(string)
		got := h.raw("GET", address, "").want(200)
		if got.body != body || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") ||
			got.header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q %v", got.body, got.header)
		}
		if r := h.raw("GET", address, "", header("Range", "bytes=0-5")).want(206); r.body != "sample" {
			t.Errorf("a range gives %q", r.body)
		}
		h.raw("GET", address, "", header("If-None-Match", got.header.Get("ETag"))).want(304)
		h.raw("HEAD", address, "").want(200)
		h.raw("GET", strings.Replace(address, base, cloud, 1), "").want(200) // both origins alike
		h.put(p.text("data", "url"), "text/csv", body).want(409)             // a PUT works once
		r := h.call("POST", "/api/files/delete", fmt.Sprintf(`{"key":%q,"source":"upload"}`, p.text("data", "key")), bearer(ada.token)).want(200)
		if r.at("data", "deleted") != true || len(h.files(ada)) != 0 || h.stored(ada) != 0 {
			t.Errorf("%s, %v left, %v counted", r.body, h.files(ada), h.stored(ada))
		}
		h.raw("GET", address, "").want(404)
		h.put(p.text("data", "url"), "text/csv", body).want(409)
	})
}

func TestASignedAddressWorksAsSignedOnly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	down := h.files2(ada)
	p := h.presign(ada, "a.csv", "text/csv", 3).want(200).text("data", "url")
	for name, r := range map[string]reply{
		"another type":       h.put(p, "text/plain", "abc"),
		"no type":            h.raw("PUT", p, "abc"),
		"shorter":            h.put(p, "text/csv", "ab"),
		"longer":             h.put(p, "text/csv", "abcd"),
		"unknown length":     h.put(p, "text/csv", "abc", func(r *http.Request) { r.ContentLength = -1 }),
		"a GET of an upload": h.raw("GET", p, ""),
		"a PUT to a file":    h.put(down, "text/csv", "abc"),
		"unsigned":           h.raw("GET", base+"/objects/teams/x", ""),
	} {
		if r.status != 403 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for _, address := range []string{p, down} {
		method := map[bool]string{true: "PUT", false: "GET"}[address == p]
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range u.Query() {
			for _, bent := range []string{"", values[0] + "0", "9" + values[0]} {
				q := u.Query()
				q.Set(name, bent)
				v := *u
				v.RawQuery = q.Encode()
				if r := h.raw(method, v.String(), "abc", header("Content-Type", "text/csv")); r.status != 403 {
					t.Errorf("%s with %s=%q: %d", method, name, bent, r.status)
				}
			}
			q := u.Query()
			q.Add(name, values[0])
			v := *u
			v.RawQuery = q.Encode()
			if r := h.raw(method, v.String(), "abc", header("Content-Type", "text/csv")); r.status != 403 {
				t.Errorf("%s with %s twice: %d", method, name, r.status)
			}
		}
		other := *u
		other.Path += "x"
		if r := h.raw(method, other.String(), "abc", header("Content-Type", "text/csv")); r.status != 403 {
			t.Errorf("%s of another key: %d", method, r.status)
		}
	}
	h.pass(5*time.Minute + time.Second)
	h.put(p, "text/csv", "abc").want(403)
	h.pass(11 * time.Minute)
	h.raw("GET", down, "").want(403)
}

func TestFilesAreFound(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, mia := h.signUp("Ada"), h.signUp("Mia")
		keys := map[string]string{}
		for _, name := range []string{"reads_1.fq", "reads_10.fq", "Räksmörgås.csv", "100%.csv"} {
			keys[name] = h.upload(ada, name, "text/plain", "x").key
		}
		wf := h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: output:reads.txt=1","outputs":{"o":{"path":"reads.txt"}}}],"outputs":{"o":{"from":"a.o"}}}`)
		h.await(ada, h.start(ada, `{"workflowId":"`+wf+`"}`))
		for query, want := range map[string]string{
			"":                       "100%.csv Räksmörgås.csv reads_10.fq reads_1.fq reads.txt",
			"?q=reads":               "reads_10.fq reads_1.fq reads.txt",
			"?q=READS_1":             "reads_10.fq reads_1.fq",
			"?q=fq+reads":            "reads_10.fq reads_1.fq",
			"?q=raksmorgas":          "Räksmörgås.csv",
			"?q=%25":                 "100%.csv",
			"?q=nothing":             "",
			"?source=output":         "reads.txt",
			"?source=upload&q=reads": "reads_10.fq reads_1.fq",
			"?directory=true":        "",
			"?directory=false&q=txt": "reads.txt",
			"?q=reads&limit=2":       "reads_10.fq reads_1.fq",
			"?key=" + url.QueryEscape(keys["reads_1.fq"]):                                                              "reads_1.fq",
			"?q=1&key=" + url.QueryEscape(keys["reads_1.fq"]) + "&key=" + url.QueryEscape(keys["100%.csv"]) + "&key=x": "100%.csv reads_1.fq",
			"?key=another": "",
		} {
			r := h.call("GET", "/api/files"+query, "", bearer(ada.token)).want(200)
			var names []string
			for _, f := range r.at("data").([]any) {
				names = append(names, f.(map[string]any)["name"].(string))
			}
			if got := strings.Join(names, " "); got != want || r.at("page", "hasMore") != strings.Contains(query, "limit") {
				t.Errorf("%s: %s, want %s; more: %v", query, got, want, r.at("page", "hasMore"))
			}
		}
		next := h.call("GET", "/api/files?q=reads&limit=2", "", bearer(ada.token)).want(200).text("page", "nextCursor")
		if rest := h.call("GET", "/api/files?q=reads&limit=2&cursor="+next, "", bearer(ada.token)).want(200).at("data").([]any); len(rest) != 1 {
			t.Errorf("the second page: %v", rest)
		}
		if theirs := h.call("GET", "/api/files?key="+url.QueryEscape(keys["reads_1.fq"]), "", bearer(mia.token)).want(200).at("data").([]any); len(theirs) != 0 {
			t.Errorf("another team sees %v", theirs)
		}
		for _, query := range []string{"?source=odd", "?directory=odd", "?q=a%00b", "?key=a%00b", "?key=", "?key=" + strings.Repeat("x&key=", 100) + "x", "?q=" + strings.Repeat("x", 201)} {
			h.call("GET", "/api/files"+query, "", bearer(ada.token)).want(400)
		}
	})
}

// files2 uploads a file and returns where it is downloaded.
func (h *harness) files2(who someone) string {
	h.t.Helper()
	h.upload(who, "b.csv", "text/csv", "xyz")
	return h.files(who)[0]["url"].(string)
}

func TestWhatMayBeUploaded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.presign(ada, "a.tar.jar", "application/octet-stream", 1).wantCode(415, "unsupported_type")
	h.presign(ada, "a.txt", "application/x-msdownload; charset=binary", 1).want(415)
	for _, body := range []string{
		`{"filename":"a\u0000b","contentType":"text/plain","size":1}`, `{"filename":"../a","contentType":"text/plain","size":1}`,
		`{"filename":"a","contentType":"nonsense","size":1}`, `{"filename":"a","contentType":"text/plain","size":-1}`,
		`{"filename":"a","contentType":"text/plain","size":1.5}`, `{"filename":"a","contentType":"text/plain","size":1e99}`,
		`{"filename":"a","contentType":"text/plain\r\nX: y","size":1}`, `{"contentType":"text/plain","size":1}`,
		`{"filename":"a","contentType":"text/plain"}`, `{"filename":"a","contentType":"text/plain","size":null}`,
	} {
		h.call("POST", "/api/files/presign", body, bearer(ada.token)).want(400)
	}
	h.presign(ada, "big", "text/plain", int(5*credits.GB)+1).want(413)
	h.presign(ada, "big", "text/plain", int(5*credits.GB)).want(200)
	h.presign(ada, "one more", "text/plain", 1).wantCode(402, "storage_limit")
}

func TestProgramsInDisguiseAreRefusedOnArrival(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	p := h.presign(ada, "data.csv", "text/csv", 10).want(200)
	h.put(p.text("data", "url"), "text/csv", "#!/bin/sh\n").want(415)
	h.put(p.text("data", "url"), "text/csv", strings.Repeat("x", 10)).want(409)
	if n := len(h.files(ada)); n != 0 || h.stored(ada) != 0 {
		t.Errorf("%d files are there, %v bytes counted", n, h.stored(ada))
	}
}

func TestHTMLFromAUserNeverRunsHere(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for _, media := range []string{"text/html", "image/svg+xml", "application/xhtml+xml"} {
		h.upload(ada, "a", media, "<script>alert(1)</script>")
		r := h.raw("GET", h.files(ada)[0]["url"].(string), "").want(200)
		if !strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment") || !strings.HasPrefix(r.header.Get("Content-Security-Policy"), "sandbox;") || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", media, r.header)
		}
	}
}

// broken sends some bytes and hangs up.
type broken struct{ left int }

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

func TestAnUploadThatBreaksOffMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	p := h.presign(ada, "a.bin", "application/octet-stream", 2000).want(200)
	h.put(p.text("data", "url"), "application/octet-stream", "", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(&broken{1500}), 2000
	}).want(400)
	if n := len(h.files(ada)); n != 0 {
		t.Errorf("half an upload is listed: %d", n)
	}
	h.put(p.text("data", "url"), "application/octet-stream", strings.Repeat("x", 2000)).want(200)
	if n := len(h.files(ada)); n != 1 || h.stored(ada) != 2000 {
		t.Errorf("%d files, %v bytes", n, h.stored(ada))
	}
}

func TestFilesPageUploadsFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for i := range 5 {
		h.upload(ada, fmt.Sprintf("f%d", i), "text/plain", "x")
	}
	var names []string
	path := "/api/files?limit=2"
	for {
		r := h.call("GET", path, "", bearer(ada.token)).want(200)
		for _, f := range r.at("data").([]any) {
			names = append(names, f.(map[string]any)["name"].(string))
		}
		if r.at("page", "hasMore") == false {
			break
		}
		path = "/api/files?limit=2&cursor=" + r.text("page", "nextCursor")
	}
	if got := strings.Join(names, " "); got != "f4 f3 f2 f1 f0" {
		t.Error(got)
	}
	for _, q := range []string{"limit=0", "limit=2001", "cursor=!"} {
		h.call("GET", "/api/files?"+q, "", bearer(ada.token)).want(400)
	}
}

func TestMembersDeleteTheirOwnFiles(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, who := w.team(access.Member)
	in := header("X-Team-Id", string(host.team))
	theirs := w.upload(host, "a.txt", "text/plain", "x")
	w.call("POST", "/api/files/delete", fmt.Sprintf(`{"key":%q,"source":"upload"}`, theirs.key), bearer(who.token), in).want(403)
	p := w.call("POST", "/api/files/presign", `{"filename":"b.txt","contentType":"text/plain","size":1}`, bearer(who.token), in).want(200)
	w.put(p.text("data", "url"), "text/plain", "x").want(200)
	w.call("POST", "/api/files/delete", fmt.Sprintf(`{"key":%q,"source":"output"}`, p.text("data", "key")), bearer(who.token), in).want(404)
	w.call("POST", "/api/files/delete", fmt.Sprintf(`{"key":%q,"source":"upload"}`, p.text("data", "key")), bearer(who.token), in).want(200)
	w.call("POST", "/api/files/delete", `{"key":"x","source":"elsewhere"}`, bearer(who.token), in).want(400)
	w.call("POST", "/api/files/delete", `{"source":"upload"}`, bearer(who.token), in).want(400)
	w.call("POST", "/api/files/delete-run", `{}`, bearer(who.token), in).want(400)
	run := w.start(host, `{"workflowId":"`+w.workflow(host, `{"nodes":[{"id":"a","command":"true"}]}`)+`"}`)
	w.await(host, run)
	w.call("POST", "/api/files/delete-run", `{"runId":"`+run+`"}`, bearer(who.token), in).want(403)
}

// An upload that somebody was allowed ends with their right to upload.
func TestASignedPutEndsWithMembership(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		for i, take := range []func(id string) reply{
			func(id string) reply {
				return h.call("DELETE", "/auth/teams/"+string(ada.team)+"/members/"+id, "", bearer(ada.token))
			},
			func(id string) reply {
				return h.call("PATCH", "/auth/teams/"+string(ada.team)+"/members/"+id, `{"role":"viewer"}`, bearer(ada.token))
			},
		} {
			eve := h.signUp(fmt.Sprint("Eve", i))
			h.join(eve, ada, access.Member)
			in := header("X-Team-Id", string(ada.team))
			presign := func(name string) reply {
				return h.call("POST", "/api/files/presign", fmt.Sprintf(`{"filename":%q,"contentType":"text/csv","size":3}`, name), bearer(eve.token), in).want(200)
			}
			used, unused := presign("used.csv"), presign("unused.csv")
			large := h.call("POST", "/api/files/uploads", `{"filename":"large.csv","contentType":"text/csv","size":3}`, bearer(eve.token), in).want(201).text("data", "uploadId")
			part := h.call("POST", "/api/files/uploads/"+large+"/parts", `{"numbers":[1]}`, bearer(eve.token), in).want(200).at("data").([]any)[0].(map[string]any)["url"].(string)
			h.put(used.text("data", "url"), "text/csv", "a,b").want(200)
			take(string(eve.id)).want(200)
			h.put(unused.text("data", "url"), "text/csv", "a,b").wantCode(409, "upload_closed")
			if got := h.put(part, "text/csv", "a,b"); got.status/100 != 4 {
				t.Errorf("a part: %d %s", got.status, got.body)
			}
			if list := h.files(ada); len(list) != 1+i || list[0]["name"] != "used.csv" {
				t.Errorf("%v", list)
			}
		}
	})
}

// What a run made cannot be fetched any more when the run is deleted, by an address that
// was given out before either.
func TestDeletedOutputsCannotBeFetched(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		w := h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: output:a.txt=one output:page.html=<p>","outputs":{"o":{"path":"a.txt"},"page":{"path":"page.html"}}}]}`)
		id := h.call("POST", "/api/runs", `{"workflowId":"`+w+`"}`, as).want(202).text("data", "runId")
		h.await(ada, id)
		var addresses []string
		for _, row := range h.call("GET", "/api/runs/"+id+"/outputs", "", as).want(200).at("data").([]any) {
			for _, name := range []string{"url", "reportUrl"} {
				if address, ok := row.(map[string]any)[name].(string); ok {
					h.raw("GET", address, "").want(200)
					addresses = append(addresses, address)
				}
			}
		}
		if len(addresses) != 3 {
			t.Fatal(addresses)
		}
		// A backup keeps the bytes where they are.
		if err := h.db.MarkBackup(t.Context(), "one", h.clock().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		h.call("DELETE", "/api/runs/"+id, "", as).want(200)
		for _, address := range addresses {
			h.raw("GET", address, "").want(404)
		}
	})
}
