package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
)

// FuzzDecode gives anything to every request body we read: it is decoded, or
// refused with a sentence and a place.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","description":"b","definition":{"nodes":[{"id":"a"}]}}`))
	f.Add([]byte(`{"email":"a@b.c","password":"correct horse","name":"A","invitation":"x"}`))
	f.Add([]byte(`{"role":"admin","name":null,"name":3}`))
	f.Add([]byte(strings.Repeat("[", 20_000)))
	f.Add([]byte(`{"name":1e999,"a/b":{"~":[1,2]}}`))
	f.Add([]byte(`{"definition":` + strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000) + `}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		x := &Exchange{Body: body}
		holds(t, body, func() (any, error) { return Decode[api.NewWorkflow](x) })
		holds(t, body, func() (any, error) { return Decode[api.WorkflowEdit](x) })
		holds(t, body, func() (any, error) { return Decode[api.ValidateRequest](x) })
		holds(t, body, func() (any, error) { return Decode[api.SignUp](x) })
		holds(t, body, func() (any, error) { return Decode[api.SignIn](x) })
		holds(t, body, func() (any, error) { return Decode[api.NewTeam](x) })
		holds(t, body, func() (any, error) { return Decode[api.RoleChange](x) })
		holds(t, body, func() (any, error) { return Decode[api.NewTeamInvitation](x) })
	})
}

func holds(t *testing.T, body []byte, decode func() (any, error)) {
	t.Helper()
	_, err := decode()
	if err == nil {
		if !json.Valid(body) {
			t.Errorf("%q was accepted", body)
		}
		return
	}
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind != fault.KindInvalid || e.Message == "" {
		t.Errorf("%q is refused with %v", body, err)
	}
}

func TestARefusedBodySaysAllThatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"compute":{"vcpu":"x","ramGb":1.5,"gpu":1},"zz":1,"resourceProfile":4}`: "compute.gpu compute.ramGb compute.vcpu resourceProfile zz",
		`{"compute":{"vcpu":"` + strings.Repeat("x", 70_000) + `","gpu":1}}`:      "compute.vcpu", // one is enough of so long a field
		`{"compute":[1]}`: "compute",
		`{"` + strings.Repeat("ä", 70_000) + `":1}`: strings.Repeat("ä", 100) + "…",
		`[]`: "",
	} {
		_, err := Decode[api.EstimateRequest](&Exchange{Body: []byte(body)})
		e, ok := errors.AsType[*fault.Error](err)
		if !ok {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var paths []string
		for _, d := range e.Details {
			paths = append(paths, d.Path)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: problems of %q, want %q", body, got, want)
		}
	}
	_, err := Decode[api.NewUpload](&Exchange{Body: []byte(`{"size":1,"entries":[{},{},{}]}`)}, AtMost[api.FolderEntry](2))
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Message != "entries has more than 2 items" {
		t.Errorf("%+v", err)
	}
	_, err = Decode[api.SetBudgets](&Exchange{Body: []byte(`{"budgets":[{"limit":"a","zz":1},{"hard":1},{"alertAt":[1,"b","c"]}]}`)})
	if e, ok := errors.AsType[*fault.Error](err); !ok || len(e.Details) != 5 {
		t.Errorf("%+v", err)
	}
}

// A stranger's body of many thousand fields that there are not is answered with a few of
// them: looking at each costs more than sending it.
func TestARefusedBodySaysNoMoreThanSoManyProblems(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fields, want int }{
		"at the limit": {mostProblems, mostProblems}, "one beyond": {mostProblems + 1, mostProblems}, "a megabyte": {60_000, mostProblems},
	} {
		var b strings.Builder
		for i := range tt.fields {
			fmt.Fprintf(&b, `,"f%06d":%d`, i, i)
		}
		body := []byte(`{"email":"a@example.org"` + b.String() + `}`)
		_, err := Decode[api.SignIn](&Exchange{Body: body})
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || len(e.Details) != tt.want || e.Details[0].Path != "f000000" || e.Message != "f000000 is not a field of this request" {
			t.Errorf("%s: %d problems, %v", name, len(e.Details), e.Message)
		}
	}
}
