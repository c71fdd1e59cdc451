package runs

import "testing"

func TestATagHasNoSecretOfAnAddress(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		`"https://host.example/run%207/a.fq?X-Amz-Signature=secret"`: "a.fq",

		`"s3://lab/run7/b.fq"`: "b.fq",
		`"teams/team_1/c.fq"`:  "c.fq",
		`"sample 1"`:           "sample 1",

		`{"r1":"https://host.example/a?sig=secret"}`: `{"r1":"https://host.example/a"}`,

		`[1, 2]`: "[1, 2]",
		`""`:     "7",
	} {
		if got := tagOfItem(item, 7); got != want {
			t.Errorf("the tag of %s is %s, want %s", item, got, want)
		}
	}
}
