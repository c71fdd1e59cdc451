package outputto_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/runs/outputto"
)

func TestATargetIsAFolderOfABucket(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"s3://lab/": true, "s3://lab/results/": true, "s3://lab/results/{runId}/": true, "s3://lab/ü ö/": true,
		"": false, "lab/results/": false, "https://lab/results/": false, "s3://": false, "s3://lab": false, "s3://LAB/a/": false, "s3://lab/results": false,
		"s3://lab//": false, "s3://lab/a//b/": false, "s3://lab/../b/": false, "s3://lab/./": false, "s3://lab/*/": false, "s3://lab/a\x00/": false, "s3://lab/\xff/": false,
		"s3://lab/a\\b/": false, "s3://lab/" + strings.Repeat("a", 512) + "/": false,
	} {
		if wrong := (outputto.Target{URL: url, Connection: "conn_1"}).Problems(); (len(wrong) == 0) != ok {
			t.Errorf("%q: %v", url, wrong)
		}
	}
	if wrong := (outputto.Target{}).Problems(); len(wrong) != 2 {
		t.Errorf("%v", wrong)
	}
	one := outputto.Target{URL: "s3://lab/results/{runId}/"}.For("run_1")
	if bucket, prefix := one.S3(); bucket != "lab" || prefix != "results/run_1/" {
		t.Errorf("%s %s", bucket, prefix)
	}
}
