package runs

import (
	"strings"
	"testing"
)

func TestAnItemIsNamedByItsID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]place{
		"align": {"align", 0, false}, "align/3": {"align", 3, true}, "align[3]": {"align", 3, true}, "align/0": {"align", 0, true}, "pipeline.ALIGN/12": {"pipeline.ALIGN", 12, true},
		"": {}, "align[": {"align[", 0, false},
	} {
		got, err := placeOf(text, nil)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		if again, err := placeOf(got.String(), nil); err != nil || again != got {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for _, text := range []string{"align/", "/3", "align/x", "align/-1", "align/3/4", "align/2147483648", "align[x]", "[3]"} {
		if got, err := placeOf(text, nil); err == nil || !strings.Contains(err.Error(), "such as align/3") {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	if got, err := placeOf("align", new(2)); err != nil || got != (place{"align", 2, true}) {
		t.Errorf("by a flag: %+v, %v", got, err)
	}
	if got, err := placeOf("align/2", new(2)); err != nil || got != (place{"align", 2, true}) {
		t.Errorf("by both: %+v, %v", got, err)
	}
	for text, shard := range map[string]int{"align/1": 2, "align": -1} {
		if got, err := placeOf(text, &shard); err == nil {
			t.Errorf("%s with %d: %+v", text, shard, got)
		}
	}
}
