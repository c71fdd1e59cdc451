package environment

import (
	"fmt"
	"slices"
)

// Wrong says what is wrong with a part of a Spec.
type Wrong struct {
	Field   string
	Item    int // of the field; -1: with all of it
	Message string
}

// checking is a Spec that is being looked at.
type checking struct {
	wrong []Wrong
}

func (c *checking) add(field string, item int, format string, args ...any) {
	c.wrong = append(c.wrong, Wrong{field, item, fmt.Sprintf(format, args...)})
}

// Checked is the wish with each requirement in its one spelling, and all that is
// wrong with it.
func (s Spec) Checked() (checked Spec, wrong []Wrong) {
	c := &checking{}
	checked = Spec{Python: s.Python, Lock: s.Lock}
	if problem := CheckPython(s.Python); s.Python != "" && problem != "" {
		c.add("python", -1, "`%s` %s", short(s.Python), problem)
	}
	if _, err := ParseLock(s.Lock); s.Lock != "" && err != nil {
		c.add("lock", -1, "the lock %s", err)
	}
	c.together(s)
	checked.Pip = list(c, "pip", s.Pip, ParseRequirement)
	checked.Conda = list(c, "conda", s.Conda, ParseMatchSpec)
	checked.Channels = c.channels(s.Channels)
	return checked, c.wrong
}

// together finds what cannot stand beside each other.
func (c *checking) together(s Spec) {
	if s.Lock != "" && (len(s.Pip) > 0 || len(s.Conda) > 0 || len(s.Channels) > 0 || s.Python != "") {
		c.add("lock", -1, "a `lock` says everything: leave out `python`, `pip`, `conda` and `channels` beside it")
		return
	}
	switch {
	case len(s.Conda) > 0 && len(s.Pip) > 0:
		c.add("pip", -1, "an environment has packages of `pip` or of `conda`, not both: many packages of PyPI are in conda channels, too")
	case len(s.Conda) > 0 && s.Python != "":
		c.add("python", -1, "beside `conda` the interpreter is a package: write `python=%s` in `conda`", short(s.Python))
	case len(s.Pip) > 0 && len(s.Channels) > 0:
		c.add("channels", -1, "`channels` are where packages of `conda` come from, and these are of `pip`")
	}
}

// list reads a list of packages.
func list[T fmt.Stringer](c *checking, field string, texts []string, parse func(string) (T, error)) (checked []string) {
	if len(texts) > MaxPackages {
		c.add(field, MaxPackages, "there are %d packages; at most %d are allowed", len(texts), MaxPackages)
		return nil
	}
	for i, text := range texts {
		one, err := parse(text)
		switch {
		case err != nil:
			c.add(field, i, "%s", err)
		case slices.Contains(checked, one.String()):
			c.add(field, i, "`%s` occurs twice", short(text))
		default:
			checked = append(checked, one.String())
		}
	}
	return checked
}

func (c *checking) channels(names []string) (checked []string) {
	if len(names) > MaxChannels {
		c.add("channels", MaxChannels, "there are %d channels; at most %d are allowed", len(names), MaxChannels)
		return nil
	}
	for i, name := range names {
		switch problem := CheckChannel(name); {
		case problem != "":
			c.add("channels", i, "`%s` %s", short(name), problem)
		case slices.Contains(checked, name):
			c.add("channels", i, "`%s` occurs twice", name)
		default:
			checked = append(checked, name)
		}
	}
	return checked
}
