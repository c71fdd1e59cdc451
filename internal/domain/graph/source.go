package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/source"
)

var sourceFields = []string{"git", "ref", "path", "connection", "submodules"}

func (c *checker) source(v *value) {
	if v.kind != object {
		c.wrong(v, nil, "an object")
		return
	}
	s, here := &source.Source{}, at(v, nil)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "git":
			if s.Git = c.text(f, here, source.MaxAddress); s.Git != "" {
				if _, err := s.Address(); err != nil {
					c.p.add(at(f, here), InvalidValue, "%s", err)
				}
			}
		case "ref":
			if s.Ref = c.text(f, here, source.MaxRef); s.Ref != "" && !source.ValidRef(s.Ref) {
				c.p.add(at(f, here), InvalidValue, "`%s` is not the name of a branch, a tag or a commit", short(s.Ref))
			}
		case "path":
			if s.Path = c.text(f, here, source.MaxPath); s.Path != "" && !source.ValidFolder(s.Path) {
				c.p.add(at(f, here), InvalidValue, "`%s` is not the path of a folder in the repository, such as `analysis/scripts`", short(s.Path))
			}
		case "connection":
			if s.Connection = c.text(f, here, maxName); s.Connection != "" && !validName(s.Connection) {
				c.p.add(at(f, here), InvalidValue, "`%s` is not the id of a connection", short(s.Connection))
			}
		case "submodules":
			s.Submodules = c.boolean(f, here)
		default:
			c.unknown(f, here, sourceFields)
		}
	}
	c.g.Source = s
}

// UsesSource reports whether a command mentions the folder of the code. Others do
// not see it, so that a change of it changes nothing for them.
func (n *Node) UsesSource() bool {
	return strings.Contains(n.Command, source.Variable) ||
		slices.ContainsFunc(slices.Collect(maps.Values(n.Env)), func(v string) bool { return strings.Contains(v, source.Variable) })
}
