package doi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/doi"
)

func TestEverySpellingIsOneName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]doi.DOI{
		"10.1093/bioinformatics/bty560":                                   "10.1093/bioinformatics/bty560",
		"10.1093/BIOINFORMATICS/BTY560":                                   "10.1093/bioinformatics/bty560",
		"doi:10.1093/bioinformatics/bty560":                               "10.1093/bioinformatics/bty560",
		"DOI: 10.1093/bioinformatics/bty560":                              "10.1093/bioinformatics/bty560",
		"doi 10.1093/bioinformatics/bty560":                               "10.1093/bioinformatics/bty560",
		"urn:doi:10.1093/bioinformatics/bty560":                           "10.1093/bioinformatics/bty560",
		"info:doi/10.1093/bioinformatics/bty560":                          "10.1093/bioinformatics/bty560",
		"https://doi.org/10.1093/bioinformatics/bty560":                   "10.1093/bioinformatics/bty560",
		"http://dx.doi.org/10.1093/bioinformatics/bty560":                 "10.1093/bioinformatics/bty560",
		"HTTPS://DOI.ORG/10.1093/bioinformatics/bty560":                   "10.1093/bioinformatics/bty560",
		"doi.org/10.1093/bioinformatics/bty560":                           "10.1093/bioinformatics/bty560",
		"https://doi.org/10.1093%2Fbioinformatics%2Fbty560":               "10.1093/bioinformatics/bty560",
		"10.1093%2Fbioinformatics%2Fbty560":                               "10.1093/bioinformatics/bty560",
		"10.1093%252Fbioinformatics%252Fbty560":                           "10.1093/bioinformatics/bty560",
		"https://doi.org/10.1093/bioinformatics/bty560?utm_source=x#ref1": "10.1093/bioinformatics/bty560",
		"  10.1093/bioinformatics/bty560.\n":                              "10.1093/bioinformatics/bty560",
		"\ufeff10.1093/bioinformatics/bty560\u200b":                       "10.1093/bioinformatics/bty560",
		"10.1000.10/182": "10.1000.10/182",
		"10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2":                       "10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2",
		"https://doi.org/10.1002/(SICI)1097-0258(19980815/30)17:15/16%3C1661::AID-SIM968%3E3.0.CO%3B2-2": "10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2",
	} {
		if got, ok := doi.Parse(text); !ok || got != want {
			t.Errorf("%q is %q (%v), want %q", text, got, ok, want)
		}
	}
}

func TestWhatIsNoNameIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "doi:", "10.1093", "10.1093/", "11.1093/abc", "10.12/abc", "not a doi", "10.1093/a b", "10.1093/a\x00b", "10.1093/a%00b",
		"https://example.org/10.1093/abc", "https://doi.org/", "10.1093/\xff", "10.1093/%ff", "10.1093/" + strings.Repeat("x", 300),
		"file:///etc/passwd", "10.1093/abc\n10.1093/def", "10.1093/../../etc passwd",
	} {
		if got, ok := doi.Parse(text); ok {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"10.1093/abc", "doi:10.1093/ABC", "https://doi.org/10.1093%2Fabc", "10.1002/(SICI)1<1::A>3.0.CO;2-2", "10.1234/a%25b", "10.1234/İ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := doi.Parse(text)
		if !ok {
			return
		}
		again, ok := doi.Parse(string(name))
		if !ok || again != name {
			t.Errorf("%q is %q, and that is %q (%v)", text, name, again, ok)
		}
	})
}
