package license

import "testing"

func TestAnIdentifierIsSpelledAsInTheList(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", " ": "", "MIT": "MIT", "mit": "MIT", " apache-2.0 ": "Apache-2.0", "CC-BY-4.0": "CC-BY-4.0", "gpl-3.0-only": "GPL-3.0-only", "0BSD": "0BSD",
	} {
		if got, message := Checked(given); got != want || message != "" {
			t.Errorf("%q is %q, %s", given, got, message)
		}
	}
}

func TestWhatIsNoIdentifierIsRefused(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"GPL-3.0", "MIT OR Apache-2.0", "mine", "LicenseRef-mine", "NOASSERTION", "MIT\n0BSD", "https://spdx.org/licenses/MIT"} {
		if got, message := Checked(given); got != "" || message == "" {
			t.Errorf("%q is taken as %q", given, got)
		}
	}
}
