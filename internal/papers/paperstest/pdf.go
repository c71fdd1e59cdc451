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
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(pages)),
		font,
	}
	escape := strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`)
	for i, page := range pages {
		var text strings.Builder
		text.WriteString("BT /F1 10 Tf 14 TL 50 800 Td\n")
		for line := range strings.Lines(page) {
			fmt.Fprintf(&text, "(%s) Tj T*\n", escape.Replace(strings.TrimRight(line, "\n")))
		}
		text.WriteString("ET")
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i),
			stream("", text.String()))
	}
	return file(objects)
}

const font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"

func stream(more, text string) string {
	return fmt.Sprintf("<< %s/Length %d >>\nstream\n%s\nendstream", more, len(text), text)
}

// Bomb is a small PDF that takes for ever to read: forms that draw the next one
// twenty times, nine deep. Its name makes it another file than the next bomb.
func Bomb(name string) []byte {
	const deep, wide, first = 9, 20, 4
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /XObject << /X %d 0 R >> >> /Contents %d 0 R >>", first, first+deep+1),
	}
	for i := range deep {
		resources := fmt.Sprintf("/Resources << /XObject << /X %d 0 R >> >> ", first+i+1)
		objects = append(objects, stream("/Type /XObject /Subtype /Form /BBox [0 0 595 842] "+resources, strings.Repeat("/X Do ", wide)))
	}
	objects = append(objects,
		stream("/Type /XObject /Subtype /Form /BBox [0 0 595 842] ", "q Q"),
		stream("", "/X Do % "+name))
	return file(objects)
}

// file puts objects together, the first of them the catalogue.
func file(objects []string) []byte {
	var b bytes.Buffer
	var at []int
	b.WriteString("%PDF-1.4\n")
	for i, object := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}
