package spelling

import (
	"strings"
	"testing"
)

func TestTheNearestNameIsMeant(t *testing.T) {
	t.Parallel()
	known := []string{"command", "outputs", "inputs", "when", "id", "n"}
	for written, want := range map[string]string{
		"comand": "command", "Command": "command", "commnad": "command", "output": "outputs", "input": "inputs", "wehn": "when", "wen": "when",
		"colour": "", "xx": "", "": "", "i": "id", strings.Repeat("command", 100_000): "",
	} {
		got := DidYouMean(written, known)
		if want == "" && got != "" || want != "" && got != `; did you mean "`+want+`"?` {
			t.Errorf("%.20q: %q, want %q", written, got, want)
		}
	}
	if got := DidYouMean("name", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
