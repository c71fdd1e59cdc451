package reader

import (
	"slices"
	"strings"
)

// accession is how an archive names what it keeps.
type accession struct {
	archive string
	pattern pattern
}

// accessions is read in this order; a group in a pattern is the name itself.
var accessions = []accession{
	{"GEO", compiled(`\b(?:GSE|GSM|GDS)\d{3,8}\b`)},
	{"SRA", compiled(`\bSR[APRSXZ]\d{5,9}\b`)},
	{"ENA", compiled(`\bER[APRSXZ]\d{5,9}\b`)},
	{"DDBJ", compiled(`\bDR[APRSXZ]\d{5,9}\b`)},
	{"BioProject", compiled(`\bPRJ(?:NA|EB|DB|CA)\d{3,8}\b`)},
	{"BioSample", compiled(`\bSAM(?:N|EA|D)\d{5,12}\b`)},
	{"ArrayExpress", compiled(`\bE-(?:MTAB|GEOD|MEXP|PROT|TABM)-\d+\b`)},
	{"EGA", compiled(`\bEGA[SD]\d{11}\b`)},
	{"dbGaP", compiled(`\bphs\d{6}(?:\.v\d+)?(?:\.p\d+)?`)},
	{"Assembly", compiled(`\bGC[AF]_\d{9}(?:\.\d+)?\b`)},
	{"RefSeq", compiled(`\b(?:N[CMPRTWZG]|X[MP])_\d{6,9}(?:\.\d+)?\b`)},
	{"GenBank", compiled(`\bGenBank\b[^.;]{0,40}?\b([A-Z]{1,2}\d{5,8}(?:\.\d)?)\b`)},
	{"PDB", compiled(`\b(?:PDB|Protein Data Bank)\b[^.;]{0,30}?\b([1-9](?:[A-Z][A-Z0-9]{2}|\d[A-Z][A-Z0-9]|\d\d[A-Z])|[1-9][a-z][a-z0-9]{2})\b`)},
	{"EMDB", compiled(`\bEMD-\d{4,5}\b`)},
	{"EMPIAR", compiled(`\bEMPIAR-\d{5}\b`)},
	{"UniProt", compiled(`\bUniProt\w*\b[^.;]{0,40}?\b([OPQ]\d[A-Z0-9]{3}\d|[A-NR-Z]\d(?:[A-Z][A-Z0-9]{2}\d){1,2})\b`)},
	{"PRIDE", compiled(`\bPXD\d{6}\b`)},
	{"MassIVE", compiled(`\bMSV\d{9}\b`)},
	{"MetaboLights", compiled(`\bMTBLS\d+\b`)},
	{"OpenNeuro", compiled(`\bds\d{6}\b`)},
	{"Zenodo", compiled(`10\.5281/\s?zenodo\.\s?\d+`)},
	{"Dryad", compiled(`10\.5061/\s?dryad\.\s?\w+`)},
	{"figshare", compiled(`10\.6084/\s?m9\.figshare\.\s?[\w.]+\w`)},
	{"Mendeley Data", compiled(`10\.17632/[\w.]+\w`)},
	{"PANGAEA", compiled(`10\.1594/PANGAEA\.\s?\d+`)},
	{"Dataverse", compiled(`10\.7910/DVN/\w+`)},
	{"GBIF", compiled(`10\.15468/dl\.\w+`)},
	{"OSF", compiled(`\bosf\.io/[a-z0-9]{5}\b`)},
	{"Kaggle", compiled(`\bkaggle\.com/[\w./-]*\w`)},
	{"CCDC", compiled(`\bCCDC\b[^.;]{0,20}?\b(\d{6,7})\b`)},
	{"ALMA", compiled(`\bADS/JAO\.ALMA#\d{4}\.\d\.\d{5}\.\w`)},
}

var codeLink = compiled(`\b(?:https?://)?(?:www\.)?(github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)/\s?([\w.-]+/[\w.-]*\w)`)

// datasets lists the data that the paper names, in the order of the paper, and
// links to code.
func datasets(sections []Section, list []use) (data, code []string) {
	for _, s := range sections {
		if s.Kind == References {
			continue
		}
		for _, a := range accessions {
			for _, m := range a.pattern().FindAllStringSubmatch(s.Text, -1) {
				data = once(data, a.archive+" "+strings.Join(strings.Fields(m[len(m)-1]), ""))
			}
		}
		for _, m := range codeLink().FindAllStringSubmatch(s.Text, -1) {
			code = once(code, "https://"+m[1]+"/"+strings.TrimSuffix(m[2], ".git"))
		}
	}
	for _, u := range list {
		if u.tool.kind.name == "database" {
			data = once(data, u.String())
		}
	}
	return data, code
}

// maxListed bounds the lists of a reading.
const maxListed = 100

func once(list []string, item string) []string {
	if len(list) >= maxListed || slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
