package kernel

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Optional is a field of a change: absent, it leaves what there is; null removes it.
type Optional[T any] struct {
	Given bool
	Value *T // nil: null
}

// UnmarshalJSONFrom notes that the field is there.
func (o *Optional[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	o.Given = true
	return json.UnmarshalDecode(in, &o.Value)
}
