package reported

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

func paths(wrong []fault.Detail) string {
	var list []string
	for _, d := range wrong {
		list = append(list, d.Path)
	}
	return strings.Join(list, " ")
}

func TestAllThatIsWrongWithANewRunIsSaid(t *testing.T) {
	t.Parallel()
	good := func() New { return New{Key: "k", Engine: "snakemake", Project: "rna"} }
	many := map[string]string{}
	for i := range maxDetails + 1 {
		many["d"+strings.Repeat("x", i)] = "v"
	}
	for name, tt := range map[string]struct {
		change func(*New)
		paths  string
	}{
		"as it should be":         {func(*New) {}, ""},
		"no key":                  {func(n *New) { n.Key = "" }, "key"},
		"the longest key":         {func(n *New) { n.Key = strings.Repeat("é", 200) }, ""},
		"a longer key":            {func(n *New) { n.Key = strings.Repeat("é", 201) }, "key"},
		"NUL in a key":            {func(n *New) { n.Key = "a\x00b" }, "key"},
		"a key of two lines":      {func(n *New) { n.Key = "a\nb" }, "key"},
		"a key that is no text":   {func(n *New) { n.Key = "a\xff" }, "key"},
		"no engine":               {func(n *New) { n.Engine = "" }, "engine"},
		"an engine in capitals":   {func(n *New) { n.Engine = "Snakemake" }, "engine"},
		"the longest engine":      {func(n *New) { n.Engine = strings.Repeat("a", 32) }, ""},
		"a longer engine":         {func(n *New) { n.Engine = strings.Repeat("a", 33) }, "engine"},
		"a project of blanks":     {func(n *New) { n.Project = " \t " }, "project"},
		"a long project":          {func(n *New) { n.Project = strings.Repeat("p", 201) }, "project"},
		"a name of two lines":     {func(n *New) { n.Name = "a\r\nb" }, "name"},
		"the longest name":        {func(n *New) { n.Name = strings.Repeat("語", 200) }, ""},
		"a long version":          {func(n *New) { n.EngineVersion = strings.Repeat("1", 101) }, "engineVersion"},
		"a tag with a blank":      {func(n *New) { n.Tags = []string{"a b"} }, "tags[0]"},
		"too many details":        {func(n *New) { n.Details = many }, "details"},
		"a detail without a name": {func(n *New) { n.Details = map[string]string{"": "x"} }, "details"},
		"several":                 {func(n *New) { *n = New{} }, "key engine project"},
	} {
		n := good()
		tt.change(&n)
		if got := paths(n.clean(noon)); got != tt.paths {
			t.Errorf("%s: %q is wrong, want %q", name, got, tt.paths)
		}
	}
}

func TestANewRunIsKeptAsItCanBe(t *testing.T) {
	t.Parallel()
	secret := "mrh_" + strings.Repeat("A1", 16)
	n := New{
		Key: "k", Engine: "nextflow", Project: " rna ", Parameters: json.RawMessage(`{"token":"` + secret + `"}`),
		Details: map[string]string{"commandLine": "run --token " + secret + "\x00", "huge": strings.Repeat("x", MaxText+1)},
	}
	if wrong := n.clean(noon); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if n.Project != "rna" || string(n.Parameters) != `{"token":"***"}` || n.Details["commandLine"] != "run --token ***�" || !n.StartedAt.Equal(noon) {
		t.Errorf("%+v", n)
	}
	if got := n.Details["huge"]; len(got) != MaxText || !strings.HasSuffix(got, cutMark) {
		t.Errorf("%d bytes are kept", len(got))
	}
	for name, tt := range map[string]struct{ said, want time.Time }{
		"an hour ago":       {noon.Add(-time.Hour), noon.Add(-time.Hour)},
		"by a fast clock":   {noon.Add(time.Hour), noon},
		"years ago":         {noon.Add(-oldest - time.Second), noon},
		"years ahead":       {time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), noon},
		"before all time":   {time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), noon},
		"as long as may be": {noon.Add(-oldest), noon.Add(-oldest)},
	} {
		n.StartedAt = tt.said
		if n.clean(noon); !n.StartedAt.Equal(tt.want) {
			t.Errorf("%s: begun %s, want %s", name, n.StartedAt, tt.want)
		}
	}
	for name, given := range map[string]string{"none": "", "too many": `{"a":"` + strings.Repeat("x", maxParameters) + `"}`} {
		n.Parameters = json.RawMessage(given)
		if n.clean(noon); string(n.Parameters) != "{}" {
			t.Errorf("%s: %d bytes of parameters", name, len(n.Parameters))
		}
	}
}

func TestATextOfAStrangerIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"one byte each": strings.Repeat("x", 200), "two": strings.Repeat("é", 100), "three": strings.Repeat("語", 100), "four": strings.Repeat("🧬", 100), "broken": strings.Repeat("x\xf0\x9f", 100), "mixed": strings.Repeat("xé語🧬", 50),
	} {
		for most := 50; most < 56; most++ {
			got := Text(s, most)
			if len(got) > most || len(got) < most-len("🧬") || !utf8.ValidString(got) || !strings.HasSuffix(got, cutMark) {
				t.Errorf("%s: %d of %d bytes: %q", name, len(got), most, got)
			}
		}
	}
	if s := "exactly"; Text(s, len(s)) != s {
		t.Error("what fits is cut")
	}
}

func TestSecretsOfOursAreNotKeptInTexts(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"oat_", "ort_", "mri_", "mrr_", "mrh_", "whsec_"} {
		token := prefix + strings.Repeat("a1-_", 8)
		if got := Text("curl -H 'Bearer "+token+"' x", 1000); strings.Contains(got, "a1") || !strings.Contains(got, "'Bearer ***' x") {
			t.Errorf("%s is kept: %s", prefix, got)
		}
		if got := line("name "+token, 500); strings.Contains(got, "a1") {
			t.Errorf("%s is kept in a name: %s", prefix, got)
		}
		if got := Text(prefix+"short", 100); got != prefix+"short" {
			t.Errorf("%s is no secret, and kept as %s", prefix+"short", got)
		}
	}
}

func TestAReportIsCleanedWhateverIsInIt(t *testing.T) {
	t.Parallel()
	nan, inf, ok := math.NaN(), math.Inf(-1), 2.5
	many := map[string]string{"good": "x", "": "x", "a b": "x", "empty": ""}
	r := Report{
		Nodes: []NodeReport{{Name: " a\nb\x00 "}}, Edges: [][2]string{{"a\tb", strings.Repeat("é", maxName+1)}}, Log: []LogText{{Text: "l\x00"}}, Finish: &Finish{Message: strings.Repeat("m", MaxText*2)},
		Name: strings.Repeat("n", 300), EngineVersion: "1\n2", StartedAt: noon.Add(time.Hour), Parameters: []byte("{\"a\":\"\xff\"}"), Details: many,
		Metrics: make([]Metric, MaxNodes*metricsOfNode+1),
		Tasks: []Task{{
			Node: "a\nb", Name: strings.Repeat("x", maxName+5), Chain: "c\x01", Message: "m\x00", Attempt: -3, Peak: -1, CPU: -time.Second, StartedAt: noon.Add(48 * time.Hour), EndedAt: noon.Add(time.Hour),
			Details: Details{WorkDir: strings.Repeat("w", maxShortText+1), CPUs: &nan, CPUPercent: &inf},
		}, {Attempt: 2, Details: Details{CPUs: &ok}}},
	}
	r.Clean(noon)
	one := r.Tasks[0]
	if r.Nodes[0].Name != "a b" || r.Edges[0][0] != "a b" || utf8.RuneCountInString(r.Edges[0][1]) != maxName || r.Log[0].Text != "l�" || len(r.Finish.Message) != MaxText {
		t.Errorf("%q %q %q %d", r.Nodes[0].Name, r.Edges[0][0], r.Log[0].Text, len(r.Finish.Message))
	}
	if len(r.Name) != 200 || r.EngineVersion != "1 2" || !r.StartedAt.Equal(noon) || string(r.Parameters) != `{"a":"�"}` || len(r.Metrics) != MaxNodes*metricsOfNode {
		t.Errorf("%d %q %s %s %d", len(r.Name), r.EngineVersion, r.StartedAt, r.Parameters, len(r.Metrics))
	}
	if len(r.Details) != 1 || r.Details["good"] != "x" {
		t.Errorf("details %v", r.Details)
	}
	if one.Node != "a b" || len(one.Name) != maxName || one.Chain != "c" || one.Message != "m�" || one.Attempt != 1 || one.Peak != 0 || one.CPU != 0 || !one.StartedAt.IsZero() || one.EndedAt.IsZero() {
		t.Errorf("%+v", one)
	}
	if len(one.Details.WorkDir) != maxShortText || one.Details.CPUs != nil || one.Details.CPUPercent != nil || *r.Tasks[1].Details.CPUs != ok || r.Tasks[1].Attempt != 2 {
		t.Errorf("%+v, %+v", one.Details, r.Tasks[1])
	}
}

func TestATaskWithoutTimesHasThatOfItsReport(t *testing.T) {
	t.Parallel()
	earlier := noon.Add(-time.Hour)
	for _, tt := range []struct {
		state              State
		said, start, ended time.Time
	}{
		{Queued, time.Time{}, time.Time{}, time.Time{}},
		{Running, time.Time{}, noon, time.Time{}},
		{Running, earlier, earlier, time.Time{}},
		{Succeeded, earlier, earlier, noon},
		{Failed, time.Time{}, time.Time{}, noon},
		{Cached, time.Time{}, time.Time{}, noon},
		{Cancelled, time.Time{}, time.Time{}, noon},
	} {
		task := Task{State: tt.state, StartedAt: tt.said}
		task.SetTimes(noon)
		if !task.StartedAt.Equal(tt.start) || !task.EndedAt.Equal(tt.ended) || !tt.state.Known() {
			t.Errorf("%s: from %s to %s", tt.state, task.StartedAt, task.EndedAt)
		}
	}
	if State("").Known() || State("RUNNING").Known() {
		t.Error("a word that is no state is known")
	}
}
