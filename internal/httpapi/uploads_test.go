package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/objects"
)

// sendPart puts a part to the address of its number.
func (h *harness) sendPart(as, id string, number int, text string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := h.call("POST", "/api/files/uploads/"+id+"/parts", fmt.Sprintf(`{"numbers":[%d]}`, number), bearer(as)).want(200)
	address, err := url.Parse(r.at("data").([]any)[0].(map[string]any)["url"].(string))
	if err != nil {
		h.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, httptest.NewRequest(http.MethodPut, address.RequestURI(), strings.NewReader(text)))
	return w
}

func (h *harness) usedBytes(as string) float64 {
	h.t.Helper()
	return h.call("GET", "/api/billing/credits", "", bearer(as)).want(200).at("storage", "usedBytes").(float64)
}

func TestALargeFileArrivesInParts(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		const part = 32 << 20
		first, last := strings.Repeat("0123456789abcdef", part/16), "the end"
		begun := h.call("POST", "/api/files/uploads", fmt.Sprintf(`{"filename":"large.csv","contentType":"text/csv","size":%d}`, part+len(last)), as).want(201)
		id := begun.text("data", "uploadId")
		if begun.at("data", "partSize") != float64(part) || begun.at("data", "partCount") != 2.0 || h.usedBytes(ada.token) != float64(part+len(last)) {
			t.Fatal(begun.body)
		}
		path := "/api/files/uploads/" + id
		sent := h.sendPart(ada.token, id, 2, last)
		if sent.Code != 200 {
			t.Fatal(sent.Body)
		}
		h.call("POST", path+"/complete", `{}`, as).wantCode(409, "incomplete_upload")
		h.call("POST", path+"/parts", `{"numbers":[3]}`, as).want(400)
		if w := h.sendPart(ada.token, id, 1, "short"); w.Code != 403 {
			t.Errorf("a short part: %d", w.Code)
		}
		if w := h.sendPart(ada.token, id, 1, first); w.Code != 200 || w.Header().Get("ETag") == "" {
			t.Fatal(w.Body)
		}
		state := h.call("GET", path, "", as).want(200)
		parts := state.at("data", "parts").([]any)
		if len(parts) != 2 || state.text("data", "filename") != "large.csv" {
			t.Fatal(state.body)
		}
		if list := h.call("GET", "/api/files", "", as).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("it is listed before it is complete: %v", list)
		}
		etag := parts[0].(map[string]any)["etag"].(string)
		h.call("POST", path+"/complete", `{"parts":[{"number":1,"etag":"`+etag+`"}]}`, as).want(400)
		h.call("POST", path+"/complete", `{"parts":[{"number":1,"etag":"`+etag+`"},{"number":2,"etag":"another"}]}`, as).wantCode(409, "part_changed")
		sum := sha256.Sum256([]byte(first + last))
		finish := fmt.Sprintf(`{"parts":[{"number":1,"etag":%q},{"number":2,"etag":%q}],"sha256":%q}`, etag, strings.Trim(sent.Header().Get("ETag"), `"`), hex.EncodeToString(sum[:]))
		for range 2 { // who lost the answer asks again
			if f := h.call("POST", path+"/complete", finish, as).want(200); f.text("data", "sha256") != hex.EncodeToString(sum[:]) || f.text("data", "key") != begun.text("data", "key") {
				t.Error(f.body)
			}
		}
		h.call("POST", path+"/parts", `{"numbers":[1]}`, as).wantCode(409, "upload_closed")
		h.call("DELETE", path, "", as).wantCode(409, "upload_closed")
		if list := h.call("GET", "/api/files", "", as).want(200).at("data").([]any); len(list) != 1 || h.usedBytes(ada.token) != float64(part+len(last)) {
			t.Errorf("%v", list)
		}
		h.call("POST", "/api/files/delete", `{"key":"`+begun.text("data", "key")+`","source":"upload"}`, as).want(200)
		if h.usedBytes(ada.token) != 0 {
			t.Errorf("%f bytes count after all is deleted", h.usedBytes(ada.token))
		}
	})
}

func TestLargeUploadsAreHeldToTheirRules(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	begin := func(name, kind string, size int64) reply {
		return h.call("POST", "/api/files/uploads", fmt.Sprintf(`{"filename":%q,"contentType":%q,"size":%d}`, name, kind, size), as)
	}
	begin("a.sh", "text/plain", 10).want(415)
	begin("a.csv", "text/csv", 0).want(400)
	begin("a/b", "text/csv", 10).want(400)
	begin("a.csv", "text/csv", 5<<40+1).want(413)
	begin("a.csv", "text/csv", 6<<30).wantCode(402, "storage_limit")
	var last string
	for range 20 {
		last = begin("a.csv", "text/csv", 4).want(201).text("data", "uploadId")
	}
	if r := begin("a.csv", "text/csv", 4).wantCode(409, "too_many_uploads"); !strings.Contains(r.text("error"), "millrace files uploads") {
		t.Error(r.body)
	}
	h.call("DELETE", "/api/files/uploads/"+last, "", as).want(200)
	h.call("GET", "/api/files/uploads/"+last, "", as).want(404)
	if h.usedBytes(ada.token) != 19*4 {
		t.Errorf("%f bytes count", h.usedBytes(ada.token))
	}
	program := begin("a.csv", "text/csv", 4).want(201).text("data", "uploadId")
	if w := h.sendPart(ada.token, program, 1, "#!sh"); w.Code != 200 {
		t.Fatal(w.Body)
	}
	h.call("POST", "/api/files/uploads/"+program+"/complete", `{}`, as).want(415)
	h.call("GET", "/api/files/uploads/"+program, "", as).want(404)
	damaged := begin("a.csv", "text/csv", 4).want(201).text("data", "uploadId")
	if w := h.sendPart(ada.token, damaged, 1, "data"); w.Code != 200 {
		t.Fatal(w.Body)
	}
	h.call("POST", "/api/files/uploads/"+damaged+"/complete", `{"sha256":"nonsense"}`, as).want(400)
	h.call("POST", "/api/files/uploads/"+damaged+"/complete", `{"sha256":"`+strings.Repeat("0", 64)+`"}`, as).wantCode(400, "sha256_mismatch")
	if h.usedBytes(ada.token) != 19*4 {
		t.Errorf("%f bytes count", h.usedBytes(ada.token))
	}
}

func TestAnUploadThatNobodyTouchesGoesAfterAWeek(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		id := h.call("POST", "/api/files/uploads", `{"filename":"a.csv","contentType":"text/csv","size":4}`, bearer(ada.token)).want(201).text("data", "uploadId")
		if w := h.sendPart(ada.token, id, 1, "data"); w.Code != 200 {
			t.Fatal(w.Body)
		}
		for _, tt := range []struct {
			after time.Duration
			gone  int
		}{{6 * 24 * time.Hour, 0}, {25 * time.Hour, 1}} {
			h.pass(tt.after)
			if r, _, err := h.uploads.EndStale(t.Context(), h.db, ""); err != nil || r.Done != tt.gone || r.Skipped != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		}
		if used, err := h.db.StorageLeft(t.Context(), ada.team); err != nil || used != 5<<30 {
			t.Errorf("%d bytes are left, %v", used, err)
		}
		if list, err := (objects.Kept{Store: h.keeper}).List(t.Context(), "", "", 10); err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
	})
}

func TestOpenUploadsAreListed(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		w := &fixtures{harness: h}
		host, member := w.team(access.Member)
		in := header("X-Team-Id", string(host.team))
		begin := func(name string, as ...change) string {
			h.pass(time.Minute)
			return h.call("POST", "/api/files/uploads", `{"filename":"`+name+`","contentType":"text/csv","size":4}`, as...).want(201).text("data", "uploadId")
		}
		first := begin("first.csv", bearer(host.token))
		complete, aborted := begin("complete.csv", bearer(host.token)), begin("aborted.csv", bearer(host.token))
		last := begin("last.csv", bearer(member.token), in)
		if sent := h.sendPart(host.token, complete, 1, "data"); sent.Code != 200 {
			t.Fatal(sent.Body)
		}
		h.call("POST", "/api/files/uploads/"+complete+"/complete", `{}`, bearer(host.token)).want(200)
		h.call("DELETE", "/api/files/uploads/"+aborted, "", bearer(host.token)).want(200)
		r := h.call("GET", "/api/files/uploads", "", bearer(host.token)).want(200)
		list := r.at("data").([]any)
		if len(list) != 2 {
			t.Fatal(r.body)
		}
		for i, want := range []struct {
			id, name string
			by       ids.User
		}{{first, "first.csv", host.id}, {last, "last.csv", member.id}} {
			u := list[i].(map[string]any)
			if by := u["createdBy"].(map[string]any); u["uploadId"] != want.id || u["filename"] != want.name || u["size"] != 4.0 || by["id"] != string(want.by) || by["name"] == "" || u["createdAt"] == "" || u["expiresAt"] == "" {
				t.Errorf("%v", u)
			}
		}
		others := h.signUp("eve")
		if r := h.call("GET", "/api/files/uploads", "", bearer(others.token)).want(200); len(r.at("data").([]any)) != 0 {
			t.Error(r.body)
		}
	})
}

func TestMembersCallOffTheirOwnUploads(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, member := w.team(access.Member)
	in := header("X-Team-Id", string(host.team))
	body := `{"filename":"a.csv","contentType":"text/csv","size":4}`
	own := w.call("POST", "/api/files/uploads", body, bearer(member.token), in).want(201).text("data", "uploadId")
	others := w.call("POST", "/api/files/uploads", body, bearer(host.token)).want(201).text("data", "uploadId")
	w.call("DELETE", "/api/files/uploads/"+others, "", bearer(member.token), in).want(403)
	w.call("DELETE", "/api/files/uploads/"+own, "", bearer(member.token), in).want(200)
}
