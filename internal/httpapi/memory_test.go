package httpapi_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func TestALargeDefinitionIsRefusedWhenMemoryIsLowAndSmallOnesAreNot(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.Memory = bounds.NewMemory(100<<20, func() int64 { return 90 << 20 })
	})
	ada := h.signUp("ada")
	w := h.call("POST", "/api/workflows", `{"name":"small"}`, bearer(ada.token)).want(201).text("data", "id")
	large := `{"nodes":[],"x-own":[` + strings.Repeat("1,", 200_000) + `1]}`
	for route, body := range map[string]string{
		"POST /api/workflows":          `{"name":"large","definition":` + large + `}`,
		"PUT /api/workflows/" + w:      `{"definition":` + large + `}`,
		"POST /api/workflows/validate": `{"definition":` + large + `}`,
	} {
		method, path, _ := strings.Cut(route, " ")
		r := h.call(method, path, body, bearer(ada.token)).wantCode(503, "memory_low")
		if r.header.Get("Retry-After") != "10" {
			t.Errorf("%s: %v", route, r.header)
		}
	}
	h.call("GET", "/api/workflows/"+w, "", bearer(ada.token)).want(200)
}

// It runs alone, because it counts what all of the program allocates. What is set aside
// for a body of this size is a little less than 300 MB.
func TestTheLargestBodyTakesNoMoreMemoryThanIsSetAside(t *testing.T) {
	h := newHarness(t)
	ada := h.signUp("ada")
	upload := h.call("POST", "/api/files/uploads", `{"filename":"a","contentType":"text/csv","size":4}`, bearer(ada.token)).want(201).text("data", "uploadId")
	begin, complete := "/api/files/uploads", "/api/files/uploads/"+upload+"/complete"
	rest := `"filename":"a","contentType":"inode/directory","size":0`
	fill := func(before, some, after string) string {
		return before + strings.Repeat(some, (kernel.FolderBody-len(before)-len(after))/len(some)) + after
	}
	var fields strings.Builder
	for fields.WriteString(`{` + rest); fields.Len() < kernel.FolderBody-20; {
		fields.WriteString(`,"f` + strconv.Itoa(fields.Len()) + `":1`)
	}
	for name, tt := range map[string]struct{ path, body, want string }{
		"more entries than a folder has":   {begin, fill(`{`+rest+`,"entries":[{}`, `,{}`, `]}`), "entries has more than 200000 items"},
		"as many at the end of an upload":  {complete, fill(`{"entries":[{}`, `,{}`, `]}`), "entries has more than 200000 items"},
		"more parts than an upload has":    {complete, fill(`{"parts":[{}`, `,{}`, `]}`), "parts has more than 10000 items"},
		"entries with a field of no entry": {begin, fill(`{`+rest+`,"entries":[{"a":1}`, `,{"a":1}`, `]}`), "entries[0].a is not a field"},
		"a list where there is no field":   {begin, fill(`{`+rest+`,"other":[{}`, `,{}`, `]}`), "other is not a field"},
		"fields that there are not":        {begin, fields.String() + `}`, "is not a field of this request"},
		"a long path":                      {begin, fill(`{`+rest+`,"entries":[{"path":"a`, `a`, `"}]}`), "is longer than 1000 bytes"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := h.call("POST", tt.path, tt.body, bearer(ada.token)).want(400)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 300 || len(r.body) > 10_000 || !strings.Contains(r.text("error"), tt.want) {
			t.Errorf("%s: %d MB for %d bytes that begin with %.200s", name, took, len(r.body), r.body)
		}
	}
}
