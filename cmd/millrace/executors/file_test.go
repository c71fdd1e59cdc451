package executors

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
)

func TestExecutorsHaveSettingsOfTheirOwn(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte(`[
		{"name":"here","kind":"local","capacity":"vcpu=4,ramGb=16"},
		{"name":"cpu","kind":"slurm","priceFactor":1.5,"slurm":{"folder":"/shared/cpu","partition":"cpu","giveUpAfter":"2h"}},
		{"name":"gpu","kind":"slurm","slurm":{"folder":"/shared/gpu","partition":"gpu"}}]`))
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []Named{
		{Name: "here", Kind: "local", Percent: 100, Capacity: credits.Size{VCPU: 4, RAMGB: 16}},
		{Name: "cpu", Kind: "slurm", Percent: 150, Slurm: Slurm{SlurmFolder: "/shared/cpu", SlurmPartition: "cpu", SlurmGiveUpAfter: 2 * time.Hour}},
		{Name: "gpu", Kind: "slurm", Percent: 100, Slurm: Slurm{SlurmFolder: "/shared/gpu", SlurmPartition: "gpu", SlurmGiveUpAfter: 24 * time.Hour}},
	} {
		if !reflect.DeepEqual(list[i], want) {
			t.Errorf("%+v", list[i])
		}
	}
}

func TestAFileOfExecutorsIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	local := `{"name":"a","kind":"local"}`
	for text, says := range map[string]string{
		`{}`: "not a list", `[` + local + `] []`: "follows", `[]`: "1 to 20", `[{"name":"a","kind":"local","colour":"red"}]`: "colour",
		`[` + local + `,{"name":"b","kind":"local"}]`: "local, too", `[` + local + `,` + local + `]`: "same name",
		`[{"name":"A","kind":"local"}]`: "`name`", `[{"name":"a","kind":"moon"}]`: "`kind`", `[{"name":"a","kind":"slurm"}]`: "`kind`",
		`[{"name":"a","kind":"local","priceFactor":0}]`: "`priceFactor`", `[{"name":"a","kind":"local","capacity":"much"}]`: "--capacity",
		`[{"name":"a","kind":"slurm","slurm":{}}]`: "folder", `[{"name":"a","kind":"slurm","slurm":{"folder":"/s","giveUpAfter":"soon"}}]`: "`giveUpAfter`",
		`[{"name":"a","kind":"slurm","slurm":{"folder":"/s","giveUpAfter":"-1h"}}]`:                                  "give-up-after",
		`[{"name":"a","kind":"kubernetes","kubernetes":{"giveUpAfter":"soon"}}]`:                                     "`giveUpAfter`",
		`[{"name":"a","kind":"kubernetes","kubernetes":{"giveUpAfter":"-1h"}}]`:                                      "give-up-after",
		`[{"name":"a","kind":"slurm","slurm":{"folder":"/s"}},{"name":"b","kind":"slurm","slurm":{"folder":"/s/"}}]`: "folder",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTheBoundsOfAFileOfExecutors(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"name":"e%d","kind":"slurm","slurm":{"folder":"/s/%d"}}`, i, i))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	named := func(length int) string { return `[{"name":"` + strings.Repeat("a", length) + `","kind":"local"}]` }
	priced := func(factor string) string { return `[{"name":"a","kind":"local","priceFactor":` + factor + `}]` }
	const kubernetes = `{"name":"%s","kind":"kubernetes","kubernetes":{"attemptsUrl":"https://m.example","image":"a","shimImage":"b","namespace":"%s"}}`
	for text, good := range map[string]bool{
		many(20): true, many(21): false, named(32): true, named(33): false, named(0): false, "null": false, "[null]": false, "": false, `["local"]`: false,
		priced("0.01"): true, priced("0.0099"): false, priced("100"): true, priced("100.01"): false, priced("-1"): false, priced("null"): true, priced(`"1"`): false,
		`[{"name":"a","kind":"local","slurm":{"folder":"/s"}}]`:                                 false,
		`[{"name":"a","kind":"slurm","slurm":{"folder":"/s"},"kubernetes":{}}]`:                 false,
		`[{"name":"a","kind":"slurm","slurm":{"folder":"/s","SlurmGiveUpAfter":1}}]`:            false,
		`[` + fmt.Sprintf(kubernetes, "a", "n") + `,` + fmt.Sprintf(kubernetes, "b", "n") + `]`: true, // their jobs are told apart by their names
		`[` + fmt.Sprintf(kubernetes, "a", "n") + `,` + fmt.Sprintf(kubernetes, "a", "m") + `]`: false,
		`[` + fmt.Sprintf(kubernetes, "a", "Not A Name") + `]`:                                  false,
	} {
		if list, err := Parse([]byte(text)); (err == nil) != good {
			t.Errorf("%.100s: %d, %v", text, len(list), err)
		}
	}
	list, err := Parse([]byte(`[` + fmt.Sprintf(kubernetes, "a", "") + `]`))
	if err != nil || list[0].Kubernetes.KubernetesNamespace != "millrace" || list[0].Kubernetes.KubernetesGiveUpAfter != 24*time.Hour {
		t.Errorf("%+v, %v", list, err)
	}
}

// Each mistake is said, and none is said of an executor that has none.
func TestAllMistakesOfAFileAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`[{"name":"A","kind":"local"},{"name":"cpu","kind":"slurm"},{"name":"here","kind":"local"},{"name":"gpu","kind":"slurm","slurm":{}}]`))
	if err == nil {
		t.Fatal("it is taken")
	}
	for name, said := range map[string]bool{`"A"`: true, `"cpu"`: true, `"here"`: false, `"gpu"`: true} {
		if strings.Contains(err.Error(), name) != said {
			t.Errorf("%s: %v", name, err)
		}
	}
}
