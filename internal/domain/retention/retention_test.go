package retention

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]Days{"": 0, "1d": 1, "90d": 90, "12w": 84, "36500d": 36500} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"0d", "-1d", "90", "d", "w", "1h", "1.5d", "36501d", "5300w", "99999999999999999999d", "9 d", "1dd"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestATeamKeepsNothingLongerThanTheOperator(t *testing.T) {
	operator := Policy{Logs: 30, Runs: 365}
	team := Policy{Logs: 90, Events: 10}
	got := team.Within(operator)
	for k, want := range map[Kind]Days{Logs: 30, Events: 10, Runs: 365, Revisions: 0} {
		if got[k] != want {
			t.Errorf("%s: %d days, want %d", k, got[k], want)
		}
	}
	if list := team.Problems(operator); len(list) != 1 || list[0].Path != "logsDays" {
		t.Errorf("problems are %v", list)
	}
	if list := (Policy{Logs: -1, Runs: Most + 1}).Problems(Policy{}); len(list) != 2 {
		t.Errorf("problems are %v", list)
	}
}
