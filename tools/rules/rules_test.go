// Package rules holds the alerts and the dashboard against Prometheus' own parser.
// It is a module of its own, since nothing else needs that.
package rules

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// labels are all that our metrics have, and those that Prometheus adds.
var labels = []string{"job", "instance", "le", "team_bucket", "chore", "executor", "outcome", "part", "method", "route", "status"}

func TestTheAlertsParse(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../../deploy/prometheus/alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	n := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			n++
			check(t, r.Alert, r.Expr)
			for _, used := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.Annotations["summary"], -1) {
				if !strings.Contains(r.Expr, used[1]) && used[1] != "instance" {
					t.Errorf("%s speaks of the label %s, which its expression does not keep", r.Alert, used[1])
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d alerts", n)
	}
}

func TestTheDashboardParses(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana/millrace.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			n++
			check(t, p.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	if n < 20 {
		t.Errorf("%d expressions", n)
	}
}

// check parses an expression and looks at its labels.
func check(t *testing.T, name, text string) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		var used []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			used = n.Grouping
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					used = append(used, m.Name)
				}
			}
		}
		for _, label := range used {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: no metric has the label %s", name, label)
			}
		}
		return nil
	})
}
