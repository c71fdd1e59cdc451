package graph

import (
	"strings"
	"testing"
)

func TestReferencesOfImages(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0a", 32)
	for ref, want := range map[string]bool{
		"alpine": true, "alpine:3.20": true, "library/alpine": true, "quay.io/biocontainers/samtools:1.20--h50ea8bc_0": true,
		"localhost/x": true, "localhost:5000/x:y": true, "registry.example.org:443/a/b/c": true, "alpine@sha256:" + sum: true, "alpine:3@sha512:" + sum + sum: true,
		"x:" + strings.Repeat("t", 128): true, "x:_tag": true, "a__b/c-d.e": true,

		"": false, ":": false, "/": false, "alpine:": false, "a//b": false, "/a": false, "a/": false, "Alpine": false, "a/B": false,
		"x:" + strings.Repeat("t", 129): false, "x:-tag": false, "x:.tag": false, "host.org:port/x": false, "host.org:/x": false, ".host.org/x": false,
		"alpine@": false, "alpine@sha256": false, "alpine@sha256:": false, "alpine@sha256:0a": false, "alpine@sha256:" + strings.ToUpper(sum): false, "alpine@sha256:" + sum + "g": false, "alpine@:" + sum: false,
		"al pine": false, "alpine\n": false, "alpine\x00": false, "alpine;id": false, "$(id)": false, "--help": false, "é": false, "../x": false, "a/../b": false, "https://quay.io/x": false,
	} {
		if validImage(ref) != want {
			t.Errorf("%q: %v", ref, !want)
		}
	}
}
