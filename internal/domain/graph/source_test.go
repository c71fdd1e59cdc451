package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
)

func TestASourceIsARepository(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`{"git":"https://github.com/you/x.git","ref":"v1.2","path":"a/b","connection":"conn_1","submodules":true}`: "",
		`{"git":"ssh://git@host:2222/x"}`:               "",
		`{"git":"git@github.com:you/x.git"}`:            "",
		`{"git":"https://[2001:db9::1]/x"}`:             "",
		`{"git":"https://h/x","ref":"refs/heads/main"}`: "",
		`{"git":"https://h/x","ui":{"open":true}}`:      "",
		`{}`:                                                     "", // a draft
		`[]`:                                                     "an object",
		`{"git":"file:///etc/passwd"}`:                           "source.git",
		`{"git":"/etc"}`:                                         "source.git",
		`{"git":"ext::sh -c evil"}`:                              "source.git",
		`{"git":"--upload-pack=evil"}`:                           "source.git",
		`{"git":"https://you:secret@h/x"}`:                       "make a connection",
		`{"git":"ssh://git:secret@h/x"}`:                         "make a connection",
		`{"git":"https://h/"}`:                                   "source.git",
		`{"git":"https://h/x?y"}`:                                "source.git",
		`{"git":"https://h/a\u0000b"}`:                           "source.git",
		`{"git":"https://-h/x"}`:                                 "source.git",
		`{"git":7}`:                                              "a string",
		`{"git":"https://h/x","ref":"-x"}`:                       "source.ref",
		`{"git":"https://h/x","ref":"a..b"}`:                     "source.ref",
		`{"git":"https://h/x","ref":"a b"}`:                      "source.ref",
		`{"git":"https://h/x","ref":"a//b"}`:                     "source.ref",
		`{"git":"https://h/x","ref":"a\u0000"}`:                  "source.ref",
		`{"git":"https://h/x","path":"../x"}`:                    "source.path",
		`{"git":"https://h/x","path":"/x"}`:                      "source.path",
		`{"git":"https://h/x","path":"a/../../x"}`:               "source.path",
		`{"git":"https://h/x","path":".GIT/hooks"}`:              "source.path",
		`{"git":"https://h/x","connection":"a b"}`:               "source.connection",
		`{"git":"https://h/x","submodules":"yes"}`:               "true or false",
		`{"git":"https://h/x","branch":"main"}`:                  "unknown field `branch`",
		`{"git":"https://h/` + strings.Repeat("x", 2_000) + `"}`: "longer than",
	} {
		g, problems := graph.Parse(fmt.Appendf(nil, `{"source":%s,"nodes":[{"id":"a","command":"ls \"$SOURCE_DIR\""}]}`, source))
		text := fmt.Sprint(problems)
		if (want == "") != (len(problems) == 0) || !strings.Contains(text, want) {
			t.Errorf("%.80s: %s, want %q", source, text, want)
		}
		if want == "" && g.Source == nil {
			t.Errorf("%s: it has no source", source)
		}
	}
}

func TestASourceWithoutAnAddressIsADraft(t *testing.T) {
	t.Parallel()
	g, _ := graph.Parse([]byte(`{"source":{"ref":"main"},"nodes":[{"id":"a","command":"ls"}]}`))
	if problems := g.Incomplete(); len(problems) != 1 || problems[0].Path != "source.git" {
		t.Errorf("got %v", problems)
	}
}

func TestWhoMentionsTheSourceUsesIt(t *testing.T) {
	t.Parallel()
	g, problems := graph.Parse([]byte(`{"nodes":[{"id":"a","command":"ls \"${SOURCE_DIR}\""},{"id":"b","command":"ls $X","env":{"X":"SOURCE_DIR"}},{"id":"c","command":"ls","env":{"Y":"1"}}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i, want := range []bool{true, true, false} {
		if got := g.Nodes[i].UsesSource(); got != want {
			t.Errorf("%s: %v", g.Nodes[i].ID, got)
		}
	}
}
