package papers

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/ai"
)

// crossrefWork is what we read of a work's record at Crossref.
type crossrefWork struct {
	Title          []string
	Abstract       string   // JATS
	ContainerTitle []string `json:"container-title"`
	Publisher      string
	Type           string
	URL            string
	Citations      *int `json:"is-referenced-by-count"`
	Issued         struct {
		DateParts [][]*int `json:"date-parts"`
	}
	Author []struct {
		Given, Family, Name, ORCID string
		Affiliation                []struct{ Name string }
	}
	License   []struct{ URL string }
	Link      []crossrefLink
	UpdatedBy []struct{ Type string } `json:"updated-by"`
}

type crossrefLink struct {
	URL         string
	ContentType string `json:"content-type"`
}

func (c *crossrefWork) year() int {
	if parts := c.Issued.DateParts; len(parts) > 0 && len(parts[0]) > 0 && parts[0][0] != nil {
		return *parts[0][0]
	}
	return 0
}

func (c *crossrefWork) authors() (list []ai.Author) {
	for _, a := range c.Author {
		by := ai.Author{Name: fullName(a.Given, a.Family, a.Name), ORCID: orcid(a.ORCID)}
		if len(a.Affiliation) > 0 {
			by.Affiliation = plain(a.Affiliation[0].Name)
		}
		if by.Name != "" {
			list = append(list, by)
		}
	}
	return list
}

func (c *crossrefWork) retracted() bool {
	return slices.ContainsFunc(c.UpdatedBy, func(u struct{ Type string }) bool {
		return u.Type == "retraction" || u.Type == "withdrawal" || u.Type == "removal"
	}) || retractedTitle.MatchString(plain(first(c.Title)))
}

// retractedTitle is what publishers put before a title. A paper about retracted
// papers begins with the word, too.
var retractedTitle = regexp.MustCompile(`^[\[(]?(?:RETRACTED\b|(?i:retracted(?: article| paper| chapter)?\s*[:\])]))`)

// openPDFs are the publisher's own, where its licence lets everybody read.
func (c *crossrefWork) openPDFs() (list []string) {
	for _, l := range c.License {
		if !strings.Contains(l.URL, "creativecommons.org/") {
			continue
		}
		for _, at := range c.Link {
			if at.ContentType == "application/pdf" {
				list = append(list, at.URL)
			}
		}
	}
	return list
}

// openAlexWork is what we read of a work at OpenAlex.
type openAlexWork struct {
	ID              string
	DOI             string
	Title           string
	DisplayName     string `json:"display_name"`
	PublicationYear int    `json:"publication_year"`
	Type            string
	IsRetracted     bool             `json:"is_retracted"`
	CitedByCount    *int             `json:"cited_by_count"`
	Abstract        map[string][]int `json:"abstract_inverted_index"`
	Authorships     []struct {
		Author struct {
			DisplayName string `json:"display_name"`
			ORCID       string
		}
		Institutions []struct {
			DisplayName string `json:"display_name"`
		}
	}
	OpenAccess struct {
		IsOA     bool   `json:"is_oa"`
		OAStatus string `json:"oa_status"`
	} `json:"open_access"`
	PrimaryLocation openAlexLocation   `json:"primary_location"`
	BestOALocation  openAlexLocation   `json:"best_oa_location"`
	Locations       []openAlexLocation `json:"locations"`
}

type openAlexLocation struct {
	IsOA    bool   `json:"is_oa"`
	PDFURL  string `json:"pdf_url"`
	License string
	Source  struct {
		DisplayName          string `json:"display_name"`
		HostOrganizationName string `json:"host_organization_name"`
	}
}

const longestAbstract = 5000 // words

// abstract puts the words back in their places.
func (o *openAlexWork) abstract() string {
	words := map[int]string{}
	last := -1
	for word, places := range o.Abstract {
		for _, at := range places {
			if at >= 0 && at < longestAbstract {
				words[at], last = word, max(last, at)
			}
		}
	}
	text := make([]string, 0, last+1)
	for i := range last + 1 {
		if w, ok := words[i]; ok {
			text = append(text, w)
		}
	}
	return strings.Join(text, " ")
}

func (o *openAlexWork) authors() (list []ai.Author) {
	for _, a := range o.Authorships {
		by := ai.Author{Name: plain(a.Author.DisplayName), ORCID: orcid(a.Author.ORCID)}
		if len(a.Institutions) > 0 {
			by.Affiliation = plain(a.Institutions[0].DisplayName)
		}
		if by.Name != "" {
			list = append(list, by)
		}
	}
	return list
}

// unpaywallWork is what we read of a record at Unpaywall.
type unpaywallWork struct {
	DOI            string
	Title          string
	Genre          string
	JournalName    string `json:"journal_name"`
	Publisher      string
	Year           int
	IsOA           bool                `json:"is_oa"`
	OAStatus       string              `json:"oa_status"`
	BestOALocation unpaywallLocation   `json:"best_oa_location"`
	OALocations    []unpaywallLocation `json:"oa_locations"`
	ZAuthors       []struct {
		Given, Family, Name, ORCID string
		RawAuthorName              string `json:"raw_author_name"`
	} `json:"z_authors"`
}

type unpaywallLocation struct {
	URLForPDF string `json:"url_for_pdf"`
	License   string
}

func (u *unpaywallWork) authors() (list []ai.Author) {
	for _, a := range u.ZAuthors {
		name := fullName(a.Given, a.Family, a.Name)
		if name == "" {
			name = plain(a.RawAuthorName)
		}
		if name != "" {
			list = append(list, ai.Author{Name: name, ORCID: orcid(a.ORCID)})
		}
	}
	return list
}

func fullName(given, family, name string) string {
	if full := strings.TrimSpace(given + " " + family); full != "" {
		return plain(full)
	}
	return plain(name)
}

var orcidShape = regexp.MustCompile(`[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]$`)

// orcid is the bare identifier, which services write as an address.
func orcid(text string) string { return orcidShape.FindString(strings.ToUpper(text)) }

var (
	heading = regexp.MustCompile(`(?is)<(?:jats:)?title[^>]*>\s*abstract\s*</(?:jats:)?title>`)
	markup  = regexp.MustCompile(`<[/?!]?[A-Za-z][^<>]*>`)
	gaps    = regexp.MustCompile(`\s+`)
)

// plain is text without the markup of publishers.
func plain(text string) string {
	text = markup.ReplaceAllString(heading.ReplaceAllString(text, " "), " ")
	return strings.TrimSpace(gaps.ReplaceAllString(html.UnescapeString(text), " "))
}
