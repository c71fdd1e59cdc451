package graph

import "github.com/millrace/millrace/internal/domain/environment"

// environment reads the software that a node brings along.
func (c *checker) environment(v *value, in *where) *environment.Spec {
	if v.kind != object {
		c.wrong(v, in, "an object with `pip`, `conda` or `lock`")
		return nil
	}
	s, here := environment.Spec{}, at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch list := s.List(f.name); {
		case list != nil:
			*list = c.texts(f, here)
		case f.name == "python":
			s.Python = c.text(f, here, maxName)
		case f.name == "lock":
			s.Lock = c.text(f, here, environment.MaxLock)
		default:
			c.unknown(f, here, []string{"python", "pip", "conda", "channels", "lock"})
		}
	}
	s, wrong := s.Checked()
	for _, w := range wrong {
		place := here.field(w.Field)
		if w.Item >= 0 {
			place = place.item(w.Item)
		}
		c.p.add(place, InvalidValue, "%s", w.Message)
	}
	return &s
}

// texts reads an array of strings.
func (c *checker) texts(v *value, in *where) (list []string) {
	ok := v.kind == array
	for _, item := range v.items {
		list, ok = append(list, item.text), ok && item.kind == text
	}
	if !ok {
		c.wrong(v, in, "an array of strings")
		return nil
	}
	return list
}
