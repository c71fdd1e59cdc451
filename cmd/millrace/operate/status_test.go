package operate

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/operator"
)

func TestAWorkerIsNamedByWhatPeopleCanType(t *testing.T) {
	t.Parallel()
	worker := func(host, code string) operator.Worker { return operator.Worker{ID: host + " " + code, Host: host} }
	all := []operator.Worker{
		worker("n1:/srv", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), worker("n2:/srv", "ABCDEFGHIXXXXXXXXXXXXXXXXX"), worker("n2:/srv#slurm", "ZBCDEFGHIJKLMNOPQRSTUVWXYZ"),
	}
	for i, want := range []string{"abcdefghij", "abcdefghix", "zbcdefgh"} {
		if got := shortID(all[i], all); got != want {
			t.Errorf("%s is %s, not %s", all[i].ID, got, want)
		}
		for _, text := range []string{want, strings.ToUpper(want), all[i].ID} {
			if id, err := onlyWorker(all, text); err != nil || id != all[i].ID {
				t.Errorf("%q: %q %v", text, id, err)
			}
		}
	}
	if id, err := onlyWorker(all, "N1"); err != nil || id != all[0].ID {
		t.Error(id, err)
	}
	if id, err := onlyWorker(all, "n2:/srv"); err != nil || id != all[1].ID {
		t.Error(id, err)
	}
	for text, want := range map[string]string{"n2": "of 2 workers", "abcdefgh": "of 2 workers", "zbc": "there is no worker", "": "there is no worker", "n3": "there is no worker"} {
		if id, err := onlyWorker(all, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q %v", text, id, err)
		}
	}
}
