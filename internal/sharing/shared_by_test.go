package sharing

import "testing"

func TestSharedByIsNoEmailAddress(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Ada": "Ada", "ada@example.org": "", "": ""} {
		if got := (ResultLink{CreatedByName: name}).SharedBy(); got != want {
			t.Errorf("%q is shown as %q", name, got)
		}
	}
}
