package quotas

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNamesForSlurmAreNeverOptionsOrCode(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lab", "Lab_1", "bio.core-2", "0x", "_a", strings.Repeat("a", 64)} {
		if !SlurmName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{
		"", "-x", "--wrap=id", "a b", "a,b", "a=b", "a;b", "$(id)", "`id`", "a\nb", "a\x00", "é", "%j", "*", "a/b", "a'b", ".a", strings.Repeat("a", 65), "lab\n",
	} {
		if SlurmName(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestAChangeTouchesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	account, limit, list := "lab", Limit(7), []string{"cluster"}
	before := Quotas{Executors: []string{"local"}, Slurm: Slurm{QOS: "low"}, Storage: 5, Team: Unlimited, Person: 3}
	after := Edit{Account: &account, Team: &limit}.Apply(before)
	if want := (Quotas{Executors: []string{"local"}, Slurm: Slurm{Account: "lab", QOS: "low"}, Storage: 5, Team: 7, Person: 3}); !reflect.DeepEqual(after, want) {
		t.Errorf("%+v", after)
	}
	none, all, no := "", []string(nil), Unlimited
	after = Edit{Executors: &all, QOS: &none, Storage: &no}.Apply(before)
	if after.Executors != nil || after.Slurm.QOS != "" || after.Storage != Unlimited || after.Person != 3 {
		t.Errorf("%+v", after)
	}
	if (Edit{Executors: &list}).Empty() || !(Edit{}).Empty() {
		t.Error("a change is taken for none, or none for one")
	}
}

func TestEverythingWrongWithAChangeIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	list, bad := []string{"cluster", "Cluster", "cluster", ""}, "--wrap=id"
	wrong := Edit{Executors: &list, Account: &bad, WCKey: &bad}.Problems()
	var paths []string
	for _, d := range wrong {
		paths = append(paths, d.Path)
	}
	if got := strings.Join(paths, " "); got != "executors[1] executors[2] executors[3] slurm.account slurm.wckey" {
		t.Error(got)
	}
	empty := []string{}
	if got := (Edit{Executors: &empty}).Problems(); len(got) != 1 {
		t.Errorf("an empty list: %v", got)
	}
}

func TestLimitsAreBounded(t *testing.T) {
	t.Parallel()
	for hours, want := range map[float64]Limit{0: 0, 0.5: 1800, 100: 360_000, MostHours: MostHours * 3600} {
		if got, err := FromHours(hours); err != nil || got != want {
			t.Errorf("%v hours are %d, %v", hours, got, err)
		}
	}
	for _, n := range []float64{-1, -0.001, math.NaN(), math.Inf(1), 1e300} {
		if l, err := FromHours(n); err == nil {
			t.Errorf("%v hours are %d", n, l)
		}
		if l, err := FromGB(n); err == nil {
			t.Errorf("%v GB are %d", n, l)
		}
	}
	if l, err := FromGB(1.5); err != nil || l != 3<<29 {
		t.Errorf("%d, %v", l, err)
	}
}

func TestARefusalSaysHowMuchAndUntilWhen(t *testing.T) {
	t.Parallel()
	err := SpentHours("the team's", 36_000, Use{Used: 30_000, Held: 5_999}, time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC))
	for _, words := range []string{"the team's quota", "10 of 10 hours", "1 January 2027", "operator"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q lacks %q", err, words)
		}
	}
}
