package graph

import "slices"

// maxSecrets is how many secrets a node may name.
const maxSecrets = 20

// secrets reads the names of the secrets that a command gets.
func (c *checker) secrets(v *value, in *where) []string {
	if v.kind != array {
		c.wrong(v, in, "an array of names")
		return nil
	}
	here := at(v, in)
	if len(v.items) > maxSecrets {
		c.p.add(here, TooMany, "there are %d secrets; at most %d are allowed", len(v.items), maxSecrets)
		return nil
	}
	var names []string
	for i := range v.items {
		f := &v.items[i]
		switch {
		case f.kind != text || !validName(f.text):
			c.p.addAbout(here.item(i), InvalidName, "is no name of a secret: it %s", nameRule)
		case slices.Contains(names, f.text):
			c.p.add(here.item(i), Duplicate, "`%s` occurs twice", f.text)
		default:
			names = append(names, f.text)
		}
	}
	return names
}

// ValidName reports whether a text may be the name of something that a
// definition can name.
func ValidName(s string) bool { return validName(s) }
