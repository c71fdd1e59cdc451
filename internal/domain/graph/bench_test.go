package graph

import (
	"fmt"
	"strings"
	"testing"
)

// large is a definition at the limits: 2,000 nodes with an expression each,
// 10,000 edges.
func large(positions bool) []byte {
	whens := []string{"params.minQuality > 10", "params.minQuality > 0 && size(inputs.reads) > 0", "inputs.reads.exists(r, r.endsWith('.gz'))", "nodes.n0.outputs.out != ''"}
	var b strings.Builder
	b.WriteString(`{"version":1,"parameters":{"minQuality":{"type":"integer","default":20,"minimum":0}},"inputs":{"reads":{"type":"files"}},"nodes":[`)
	for i := range MaxNodes {
		if i > 0 {
			b.WriteByte(',')
		}
		position := ""
		if positions {
			position = fmt.Sprintf(`"position":{"x":%d,"y":%d},`, i%50*320, i/50*160)
		}
		when := whens[i%3]
		if i > 0 {
			when = whens[i%4]
		}
		fmt.Fprintf(&b, `{"id":"n%d","name":"Step %d","type":"task",%s"image":"quay.io/biocontainers/fastp:0.23.4","command":"fastp -q \"$PARAM_minQuality\" -i in.fq -o out.fq","inputs":{"reads":{"from":"inputs.reads","optional":true}},"outputs":{"out":{"path":"out.fq"}},"resources":{"vcpu":2,"ramGb":8},"retries":{"max":2,"on":["error","oom"]},"timeoutSeconds":3600,"when":"%s","cache":true}`, i, i, position, when)
	}
	b.WriteString(`],"edges":[`)
	for i := range MaxEdges {
		target := 1 + i%(MaxNodes-1)
		source := 0
		if i >= MaxNodes {
			source = max(0, target-1-i*7919%50)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"e%d","source":"n%d","sourceHandle":"out","target":"n%d","targetHandle":"reads"}`, i, source, target)
	}
	b.WriteString(`],"outputs":{"out":{"from":"n1999.out"}}}`)
	return []byte(b.String())
}

func BenchmarkParse2000(b *testing.B) {
	for name, positions := range map[string]bool{"placed": true, "laid out": false} {
		b.Run(name, func(b *testing.B) {
			data := large(positions)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				g, problems := Parse(data)
				if len(problems) > 0 {
					b.Fatal(problems)
				}
				if g.Fingerprint() == "" || len(g.JSON()) == 0 {
					b.Fatal("nothing came of it")
				}
			}
		})
	}
}

// BenchmarkDistinctExpressions is a definition of which every node has a text of
// its own.
func BenchmarkDistinctExpressions(b *testing.B) {
	var nodes []string
	for i := range MaxNodes {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","when":"params.minQuality > %d"}`, i, i))
	}
	data := []byte(`{"parameters":{"minQuality":{"type":"integer"}},"nodes":[` + strings.Join(nodes, ",") + `]}`)
	for b.Loop() {
		if _, problems := Parse(data); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
