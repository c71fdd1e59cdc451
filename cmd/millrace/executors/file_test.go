package executors

import (
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
