package graph

import "slices"

var resourceFields = []string{"vcpu", "ramGb", "gpu"}

func (c *checker) resources(v *value, in *where) Resources {
	r := Resources{VCPU: 1}
	if v.kind != object {
		c.wrong(v, in, "an object")
		return r
	}
	here := at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "vcpu":
			r.VCPU = c.positive(f, here, 4_096)
		case "ramGb":
			r.RAMGB = c.positive(f, here, 1<<20)
		case "gpu":
			r.GPU = c.whole(f, here, 0, 1_024)
		default:
			c.unknown(f, here, resourceFields)
		}
	}
	return r
}

var retryFields = []string{"max", "backoffSeconds", "factor", "maxBackoffSeconds", "on", "memoryFactor"}

func (c *checker) retries(v *value, in *where) Retries {
	r := defaultRetries()
	if v.kind != object {
		c.wrong(v, in, "an object")
		return r
	}
	here := at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "max":
			r.Max = c.whole(f, here, 0, 100)
		case "backoffSeconds":
			r.Backoff = seconds(c.number(f, here, 0, maxSeconds))
		case "factor":
			r.Factor = c.number(f, here, 1, 1_000)
		case "maxBackoffSeconds":
			r.MaxBackoff = seconds(c.number(f, here, 0, maxSeconds))
		case "on":
			r.On = c.reasons(f, here)
		case "memoryFactor":
			r.MemoryFactor = c.number(f, here, 1, 1_000)
		default:
			c.unknown(f, here, retryFields)
		}
	}
	return r
}

func (c *checker) reasons(v *value, in *where) []Reason {
	if v.kind != array {
		c.wrong(v, in, "an array")
		return nil
	}
	var on []Reason
	for i := range v.items {
		f, why := &v.items[i], Reason(v.items[i].text)
		switch {
		case f.kind != text || !slices.Contains(reasons(), why):
			c.p.add(at(v, in).item(i), InvalidValue, "a reason is `error`, `timeout` or `oom`")
		case slices.Contains(on, why):
			c.p.add(at(v, in).item(i), Duplicate, "`%s` occurs twice", why)
		default:
			on = append(on, why)
		}
	}
	return on
}

var scatterFields = []string{"over", "maxParallel"}

func (c *checker) scatter(v *value, in *where) *Scatter {
	s := &Scatter{}
	if v.kind != object {
		c.wrong(v, in, "an object")
		return s
	}
	here := at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "over":
			s.Over = c.text(f, here, maxExpression)
		case "maxParallel":
			s.MaxParallel = c.whole(f, here, 1, MaxShards)
		default:
			c.unknown(f, here, scatterFields)
		}
	}
	return s
}

// env reads variables. Their names are the shell's business, so that only what
// no shell could read is refused.
func (c *checker) env(v *value, in *where) map[string]string {
	if v.kind != object {
		c.wrong(v, in, "an object")
		return nil
	}
	here := at(v, in)
	if len(v.items) > maxEntries {
		c.p.add(here, TooMany, "there are %d variables; at most %d are allowed", len(v.items), maxEntries)
		return nil
	}
	env := make(map[string]string, len(v.items))
	for i := range v.items {
		f := &v.items[i]
		if !validName(f.name) {
			c.p.add(at(f, here), InvalidName, "`%s` cannot name a variable: it %s", short(f.name), nameRule)
			continue
		}
		env[f.name] = c.text(f, here, maxVariable)
	}
	return env
}
