package kernel

import "testing"

func TestACellIsNoFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a", "a=1": "a=1", "-1.5": "-1.5", "+49": "+49", "-1e3": "-1e3", "=1+1": "'=1+1", "-1+1": "'-1+1", "+cmd|x": "'+cmd|x", "@SUM(A1)": "'@SUM(A1)",
		"\t=1": "'\t=1", "\r=1": "'\r=1", "-": "'-", "'=1": "'=1",
	} {
		if got := Inert(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
