package papers

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/ai"
)

// from reads a record as its service sends it.
func record[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return into
}

func TestMarkupIsNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"On <i>E. coli</i>":    "On E. coli",
		"A &amp; B &#x2013; C": "A & B – C",
		"<jats:title>Abstract</jats:title><jats:p>It flows.</jats:p>": "It flows.",
		"<title>ABSTRACT</title>\n  <p>It\n\tflows.</p>":              "It flows.",
		"p < 0.05 and q > 3":          "p < 0.05 and q > 3",
		"a<sub>2</sub>":               "a 2",
		`<a href="x>y">z</a>`:         `y">z`,
		"  ":                          "",
		"<p></p>":                     "",
		"H<sup>+</sup>/K<sup>+</sup>": "H + /K +",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestIdentifiersOfPeopleAreBare(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://orcid.org/0000-0002-1825-0097": "0000-0002-1825-0097", "0000-0002-1694-233x": "0000-0002-1694-233X",
		"": "", "0000-0002-1825": "", "https://orcid.org/0000-0002-1825-0097/": "", "javascript:alert(1)": "", "0000-0002-1825-00977": "",
	} {
		if got := orcid(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestTheYearOfARecord(t *testing.T) {
	t.Parallel()
	for parts, want := range map[string]int{`[[2018,5,28]]`: 2018, `[[2018]]`: 2018, `[[null]]`: 0, `[[]]`: 0, `[]`: 0, `null`: 0} {
		if got := record[crossrefWork](t, `{"issued":{"date-parts":`+parts+`}}`).year(); got != want {
			t.Errorf("%s is %d", parts, got)
		}
	}
}

func TestAnAbstractIsPutBackInOrder(t *testing.T) {
	t.Parallel()
	for index, want := range map[string]string{
		`{"flows":[1,3],"It":[0],"and":[2]}`:       "It flows and flows",
		`{"It":[0],"flows":[7]}`:                   "It flows",
		`{"It":[0],"never":[-1],"far":[5000,1e9]}`: "It",
		`{"It":[0],"last":[4999]}`:                 "It last",
		`{}`:                                       "",
		`null`:                                     "",
		`{"It":[]}`:                                "",
	} {
		if got := record[openAlexWork](t, strings.ReplaceAll(`{"abstract_inverted_index":`+index+`}`, "1e9", "1000000000")).abstract(); got != want {
			t.Errorf("%s is %q, want %q", index, got, want)
		}
	}
}

// A paper about retracted papers is not one of them.
func TestWhatIsRetracted(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]bool{
		"RETRACTED: On mills": true, "RETRACTED ARTICLE: On mills": true, "Retracted: On mills": true, "Retracted Article: On mills": true, "[Retracted] On mills": true, "(retracted) On mills": true,
		"<b>RETRACTED</b>: On mills": true, "RETRACTED On mills": true,
		"Retracted papers keep being cited": false, "Retracted articles: a survey of mills": false, "On retracted papers": false, "On mills": false, "RETRACTEDLY": false, "": false,
	} {
		c := crossrefWork{Title: []string{title}}
		if got := c.retracted(); got != want {
			t.Errorf("%q: %v", title, got)
		}
	}
	for kind, want := range map[string]bool{"retraction": true, "withdrawal": true, "removal": true, "correction": false, "erratum": false, "": false} {
		if got := record[crossrefWork](t, `{"title":["On mills"],"updated-by":[{"type":"correction"},{"type":"`+kind+`"}]}`).retracted(); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

func TestPeopleAreNamedByWhoeverKnowsThem(t *testing.T) {
	t.Parallel()
	c := record[crossrefWork](t, `{"author":[{"given":"Ada","family":"<b>Weir</b>"},{"family":"Wheel"},{"name":"The Mill &amp; Co"},{},{"given":" ","family":""}]}`)
	u := record[unpaywallWork](t, `{"z_authors":[{"raw_author_name":"A. Weir"},{"given":"Ben","family":"Wheel","ORCID":"http://orcid.org/0000-0002-1825-0097"},{}]}`)
	o := record[openAlexWork](t, `{"authorships":[{"author":{"display_name":"Ada Weir","orcid":null},"institutions":[{"display_name":"Stream &amp; Co"}]},{"author":{"display_name":null}},{"author":null}]}`)
	fromCrossref := []ai.Author{{Name: "Ada Weir"}, {Name: "Wheel"}, {Name: "The Mill & Co"}}
	fromOpenAlex := []ai.Author{{Name: "Ada Weir", Affiliation: "Stream & Co"}}
	fromUnpaywall := []ai.Author{{Name: "A. Weir"}, {Name: "Ben Wheel", ORCID: "0000-0002-1825-0097"}}
	for name, tt := range map[string]struct {
		told told
		want []ai.Author
	}{
		"all": {told{crossref: *c, openAlex: *o, unpaywall: *u}, fromCrossref}, "two": {told{openAlex: *o, unpaywall: *u}, fromOpenAlex},
		"one": {told{unpaywall: *u}, fromUnpaywall}, "nobody": {told{}, []ai.Author{}},
	} {
		if diff := cmp.Diff(tt.want, tt.told.authors()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The likeliest copy comes first, each once, at most four, and only those that
// are open and on the web.
func TestWhereCopiesAre(t *testing.T) {
	t.Parallel()
	all := told{
		unpaywall: *record[unpaywallWork](t, `{"best_oa_location":{"url_for_pdf":"https://u/best"},"oa_locations":[{"url_for_pdf":"https://u/best"},{"url_for_pdf":null},{"url_for_pdf":"ftp://u/x"},{"url_for_pdf":"https://u/2"}]}`),
		openAlex:  *record[openAlexWork](t, `{"best_oa_location":{"pdf_url":"https://o/best"},"locations":[{"is_oa":false,"pdf_url":"https://o/closed"},{"is_oa":true,"pdf_url":"https://o/2"}]}`),
		crossref:  *record[crossrefWork](t, `{"license":[{"URL":"https://creativecommons.org/licenses/by/4.0/"}],"link":[{"URL":"https://c/pdf","content-type":"application/pdf"},{"URL":"https://c/xml","content-type":"text/xml"}]}`),
	}
	fewer := all
	fewer.unpaywall = unpaywallWork{}
	alone := told{crossref: all.crossref}
	sold := told{crossref: *record[crossrefWork](t, `{"license":[{"URL":"https://publisher/tdm"}],"link":[{"URL":"https://c/pdf","content-type":"application/pdf"}]}`)}
	for name, tt := range map[string]struct {
		told told
		want []string
	}{
		"all":             {all, []string{"https://u/best", "https://u/2", "https://o/best", "https://o/2"}},
		"no Unpaywall":    {fewer, []string{"https://o/best", "https://o/2", "https://c/pdf"}},
		"Crossref alone":  {alone, []string{"https://c/pdf"}},
		"no free licence": {sold, nil},
		"nothing":         {told{unpaywall: *record[unpaywallWork](t, `{"best_oa_location":null,"oa_locations":null}`)}, nil},
	} {
		if got := tt.told.copies(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Each particular is that of the first who knows it, and nobody is asked who
// did not answer.
func TestAPaperOfHalfTheServices(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	o := record[openAlexWork](t, `{"id":"W1","title":"T","publication_year":2019,"type":"article","is_retracted":true,"cited_by_count":3,"primary_location":{"source":{"display_name":"J &amp; K","host_organization_name":"P"}},
		"open_access":{"is_oa":true,"oa_status":"green"},"best_oa_location":{"license":"cc-by","pdf_url":"https://o/x"}}`)
	yes, three := true, 3
	got := (&told{openAlex: *o, errs: [3]error{away, nil, away}}).paper("10.1/x")
	want := ai.Paper{
		DOI: "10.1/x", Title: "T", Journal: "J & K", Publisher: "P", Year: 2019, Type: "article", URL: "https://doi.org/10.1/x", Source: "openalex", Authors: []ai.Author{},
		CitationCount: &three, IsRetracted: &yes, OpenAccess: &ai.OpenAccess{IsOA: true, Status: "green", License: "cc-by", PDFURL: "https://o/x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	u := record[unpaywallWork](t, `{"doi":"10.1/x","title":"U","year":2018,"is_oa":false,"oa_status":"closed","genre":"book"}`)
	got = (&told{unpaywall: *u, errs: [3]error{away, away, nil}}).paper("10.1/x")
	want = ai.Paper{DOI: "10.1/x", Title: "U", Year: 2018, Type: "book", URL: "https://doi.org/10.1/x", Source: "unpaywall", Authors: []ai.Author{}, OpenAccess: &ai.OpenAccess{Status: "closed"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whether it is retracted is not known: %s", diff)
	}
	if got := (&told{crossref: crossrefWork{URL: "javascript:alert(1)"}, errs: [3]error{nil, away, away}}).paper("10.1/x"); got.URL != "https://doi.org/10.1/x" || got.OpenAccess != nil {
		t.Errorf("%+v", got)
	}
}
