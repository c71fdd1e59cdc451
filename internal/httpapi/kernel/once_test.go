package kernel

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
)

// The same words to another run are another request; what a version recorded that
// looked at the words alone is repeated.
func TestRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	request := func(id, body string) *Exchange {
		r := httptest.NewRequest("POST", "/api/runs/"+id+"/cancel", strings.NewReader(body))
		r.SetPathValue("id", id)
		x := &Exchange{Request: r, Body: []byte(body)}
		x.key = &access.IdempotencyKey{Fingerprint: x.fingerprint()}
		return x
	}
	x := request("run_1", "{}")
	for name, tt := range map[string]struct {
		recorded string
		same     bool
	}{
		"the same":                      {request("run_1", "{}").key.Fingerprint, true},
		"other words":                   {request("run_1", "{ }").key.Fingerprint, false},
		"to another":                    {request("run_2", "{}").key.Fingerprint, false},
		"by an earlier version":         {hexSum([]byte("{}")), true},
		"other words by an earlier one": {hexSum([]byte("{ }")), false},
	} {
		if x.sameRequest(tt.recorded) != tt.same {
			t.Errorf("%s: %s", name, tt.recorded)
		}
	}
}
