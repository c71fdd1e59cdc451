package paperstest

import (
	"bytes"
	"fmt"
	"strings"
)

// Sample is a page that names tools in the order in which they were used.
const Sample = `Water wheels and gene expression
Abstract
We measured how mills change the genes of the stream. Reads were trimmed, aligned and counted.
Methods
Raw reads were trimmed with fastp v0.23.4 using default parameters.
Trimmed reads were aligned to the reference genome with HISAT2 v2.2.1.
Alignments were sorted with SAMtools v1.17, and genes were counted with featureCounts v2.0.3.
Differential expression was computed with DESeq2 v1.40.
Results
Forty genes differ between the streams above and below the mill.`

// PDF sets each text on a page of its own, line by line.
func PDF(pages ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(format string, args ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), fmt.Sprintf(format, args...))
	}
	b.WriteString("%PDF-1.4\n")
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(pages))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	escape := strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`)
	for i, page := range pages {
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i)
		var text strings.Builder
		text.WriteString("BT /F1 10 Tf 14 TL 50 800 Td\n")
		for line := range strings.Lines(page) {
			fmt.Fprintf(&text, "(%s) Tj T*\n", escape.Replace(strings.TrimRight(line, "\n")))
		}
		text.WriteString("ET")
		object("<< /Length %d >>\nstream\n%s\nendstream", text.Len(), text.String())
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}
