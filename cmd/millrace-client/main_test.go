package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/screen"
)

func TestTheClientAlone(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		out  string
	}{
		"version":         {0, "millrace v9"},
		"--help":          {0, "Start with: millrace login"},
		"man":             {0, ".TH MILLRACE 1"},
		"serve":           {80, "unexpected argument serve"},
		"completion bash": {0, "complete -o default"},
	} {
		var out bytes.Buffer
		w := screen.Console{Ctx: t.Context(), Out: &out, Err: &out, Version: "v9", Env: func(string) string { return "" }}
		if code := run(w, strings.Fields(args)); code != want.code || !strings.Contains(out.String(), want.out) {
			t.Errorf("%s: %d %s", args, code, out.String())
		}
	}
}
