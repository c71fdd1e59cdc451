package reader_test

import (
	"os"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/ai/reader/readertest"
)

func TestTmp(t *testing.T) {
	want, hit, got, versions, vhit := 0, 0, 0, 0, 0
	for _, p := range readertest.Papers(t) {
		pdf := readertest.PDF(t, p)
		pages := readertest.Pages(t, pdf)
		r := reader.Read(reader.Paper{Pages: pages})
		text := ""
		for _, q := range pages {
			text += q.Text + "\f"
		}
		os.WriteFile("/tmp/rd/"+p.Name+".txt", []byte(text), 0o600)
		os.WriteFile("/tmp/rd/"+p.Name+".pdf", pdf, 0o600)
		j, _ := json.MarshalIndent(r, "", " ")
		os.WriteFile("/tmp/rd/"+p.Name+".json", j, 0o600)
		all := append(slices.Clone(p.Tools), p.Listed...)
		var missing, wrong, ver []string
		for _, w := range all {
			name := nameOnly(w)
			want++
			i := slices.IndexFunc(r.Methodology.Software, func(s string) bool { return s == name || strings.HasPrefix(s, name+" ") && !strings.ContainsAny(s[len(name)+1:len(name)+2], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQSTUVWXYZ") })
			if i < 0 {
				missing = append(missing, w)
				continue
			}
			hit++
			if w != name {
				versions++
				if r.Methodology.Software[i] == w {
					vhit++
				} else {
					ver = append(ver, r.Methodology.Software[i]+"≠"+w)
				}
			}
		}
		for _, s := range r.Methodology.Software {
			if strings.HasPrefix(s, "https") {
				continue
			}
			got++
			if !slices.ContainsFunc(all, func(w string) bool { return nameOnly(w) == nameOnly(s) }) {
				wrong = append(wrong, s)
			}
		}
		t.Log(p.Name, "missing", missing, "wrong", wrong, "versions", ver)
		t.Log("   data", r.Methodology.Datasets, "title", r.Title == p.Title, r.Title)
	}
	t.Log(want, hit, got, versions, vhit)
}

func nameOnly(s string) string {
	i := strings.LastIndexByte(s, ' ')
	if i > 0 && strings.ContainsAny(s[i:], "0123456789") {
		return s[:i]
	}
	return s
}
