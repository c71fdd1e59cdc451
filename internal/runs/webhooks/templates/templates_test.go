package templates

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// told is a message about a run that somebody named to do harm.
func told(t testing.TB, name, message string) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"type": "run.failed", "timestamp": "2026-11-16T05:00:12.345Z", "data": map[string]any{
		"runId": "run_1", "workflowName": name, "number": 12, "status": "failed", "errorMessage": message, "tags": []string{"a", "b"},
		"startedBy": map[string]any{"type": "user", "id": "user_1", "name": name}, "creditsUsed": 0.25,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEachChatGetsAMessageItTakes(t *testing.T) {
	t.Parallel()
	for format, want := range map[Format]string{
		Slack:      `"*<https://here/runs/run_1|Align #12 failed>*\nStep a exited with status 3"`,
		Teams:      `"text":"Align \\#12 failed"`,
		Mattermost: `"text":"[**Align \\#12 failed**](https://here/runs/run_1)\nStep a exited with status 3"`,
		Discord:    `"allowed_mentions":{"parse":[]}`,
	} {
		out, err := Render(format, "", "https://here", told(t, "Align", "Step a exited with status 3\n\na line"))
		text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(out))
		if err != nil || !strings.Contains(text, want) || strings.Contains(text, "{{") || strings.Contains(text, "a line") {
			t.Errorf("%s: %v\n%s\nwant %s", format, err, text, want)
		}
	}
	test := []byte(`{"type":"webhook.test","timestamp":"2026-11-16T05:00:12.345Z","data":{"message":"This is a test."}}`)
	if out, err := Render(Slack, "", "https://here", test); err != nil || !strings.Contains(string(out), "This is a test.") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := Render(Standard, "", "https://here", test); err != nil || string(out) != string(test) {
		t.Errorf("%s, %v", out, err)
	}
	out, err := Render(Custom, `{"n": 1.50, "s": ["{{ tags }} {{creditsUsed}}", {"x": "{{type}}"}]}`, "", told(t, "a", ""))
	if want := `{"n":1.50,"s":["a, b 0.25",{"x":"run.failed"}]}`; err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}

func TestWhatIsWrongWithATemplate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format   Format
		template string
		field    string
	}{
		{"irc", "", "format"},
		{"", "", "format"},
		{Standard, `{}`, "template"},
		{Custom, "", "template"},
		{Custom, `[]`, "template"},
		{Custom, `null`, "template"},
		{Custom, `{"a":"{{secret}}"}`, "template"},
		{Custom, `{"a":"{{}}"}`, "template"},
		{Custom, `{} {}`, "template"},
		{Custom, `{"a":}`, "template"},
		{Slack, `{"a":"` + strings.Repeat("x", most) + `"}`, "template"},
		{Slack, "", ""},
		{Standard, "", ""},
		{Custom, `{"a":"{{name}}"}`, ""},
	} {
		if field, message := Check(c.format, c.template); field != c.field {
			t.Errorf("%s %.40s: %q %s", c.format, c.template, field, message)
		}
	}
	for format := range recipes {
		if field, message := Check(format, Recipe(format)); field != "" {
			t.Errorf("%s: %s %s", format, field, message)
		}
	}
	// A long name full of signs still fits into what Discord and Slack take.
	harm := told(t, strings.Repeat("*&", 100), strings.Repeat("&", 5000))
	for format, limit := range map[Format]int{Discord: 1024, Slack: 3000} {
		out, err := Render(format, "", "https://here", harm)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		stringsOf(decoded(t, out), &all)
		for _, s := range all {
			if n := len([]rune(s)); n > limit || format == Discord && strings.Contains(s, "failed") && n > 256 {
				t.Errorf("%s: a text has %d characters", format, n)
			}
		}
	}
	long := `{"a":"` + strings.Repeat("{{name}}", 900) + `"}`
	if field, _ := Check(Custom, long); field != "template" {
		t.Error("a template whose messages are too long is taken")
	}
	// No value makes more of a template that is taken than a message may have.
	for _, format := range []Format{Slack, Teams, Mattermost, Discord, Custom} {
		template, fits := "", 0
		for n := 1; ; n++ {
			next := `{"a":"` + strings.Repeat("{{name}}", n) + `"}`
			if field, _ := Check(format, next); field != "" {
				break
			}
			template, fits = next, n
		}
		for _, sign := range []string{"&", "<", "@", "\\", `"`, "😀", "\u2028", "\xff", "\x00", "\ufffd", "://", "www."} {
			event, _ := json.Marshal(map[string]any{"data": map[string]any{"name": strings.Repeat(sign, 300)}})
			if _, err := Render(format, template, "", event); err != nil {
				t.Errorf("%s: %d names of %q: %v", format, fits, sign, err)
			}
		}
	}
	if out, err := Render(Custom, long, "", []byte(`{"data":{"name":"`+strings.Repeat("x", 5000)+`"}}`)); err == nil {
		t.Errorf("%d bytes", len(out))
	}
}

// Whatever somebody calls a workflow or writes as an error, the message has the
// same shape, and nothing of it becomes markup or calls everybody.
func FuzzValuesNeverBecomeCode(f *testing.F) {
	for _, text := range []string{
		`","text":"x`, "{{url}}", "<!channel>", "<https://evil.example|click>", "@everyone", "[click](https://evil.example)", "\\", "`", "a\nb", "\x00", "\xff", "😀",
		"Sign in again: https://evil.example", "WWW.evil.example",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		of := maps.Clone(recipes)
		of[Custom] = `{"content": "{{title}}", "more": ["{{url}}", "{{errorMessage}} {{startedBy}}"]}`
		for format, template := range of {
			plain, err := Render(format, template, "https://here", told(t, "name", "message"))
			if err != nil {
				t.Fatal(err)
			}
			out, err := Render(format, template, "https://here", told(t, text, text))
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if shape(t, out) != shape(t, plain) {
				t.Errorf("%s: %q changes the message: %s", format, text, out)
			}
			if strings.Count(string(out), "://") != strings.Count(string(plain), "://") || strings.Contains(strings.ToLower(string(out)), "www.") {
				t.Errorf("%s: %q becomes a link: %s", format, text, out)
			}
			var all []string
			stringsOf(decoded(t, out), &all)
			for _, s := range all {
				if strings.Contains(s, "<!") || strings.Contains(s, "@everyone") || strings.Contains(s, "<https://evil") || format != Slack && strings.Contains(s, "](https://evil") {
					t.Errorf("%s: %q becomes %q", format, text, s)
				}
			}
		}
	})
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func stringsOf(v any, into *[]string) {
	switch v := v.(type) {
	case string:
		*into = append(*into, v)
	case []any:
		for _, e := range v {
			stringsOf(e, into)
		}
	case map[string]any:
		for _, e := range v {
			stringsOf(e, into)
		}
	}
}

// shape is a message with nothing in its strings.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	var empty func(v any) any
	empty = func(v any) any {
		switch v := v.(type) {
		case string:
			return ""
		case []any:
			for i := range v {
				v[i] = empty(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = empty(v[k])
			}
		}
		return v
	}
	out, err := json.Marshal(empty(decoded(t, text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
