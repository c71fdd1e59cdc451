package httpapi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/httpapi"
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
