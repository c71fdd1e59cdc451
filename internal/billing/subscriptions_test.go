package billing

import (
	"testing"
	"time"
)

// Whatever order two events of one second come in, the same one is last.
func TestEventsOfOneSecondAreToldApartByWhatTheySay(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	for name, tt := range map[string]struct{ first, second Subscription }{
		"it begins once":                {Subscription{State: "pro", Before: "pro", Began: true, EventAt: at}, Subscription{State: "team", Before: "team", EventAt: at}},
		"it ends once":                  {Subscription{State: "team", Before: "pro", EventAt: at}, Subscription{State: "free", Ended: true, EventAt: at}},
		"the end stays the end":         {Subscription{State: "team", Before: "pro", EventAt: at.Add(time.Second)}, Subscription{State: "free", Ended: true, EventAt: at}},
		"a change says what was before": {Subscription{State: "pro", Before: "free", EventAt: at}, Subscription{State: "team", Before: "pro", EventAt: at}},
		"so does one that changes none": {Subscription{State: "pro", Before: "pro", EventAt: at}, Subscription{State: "team", Before: "pro", EventAt: at}},
		"else the clock decides":        {Subscription{State: "pro", Before: "team", EventAt: at}, Subscription{State: "team", Before: "free", EventAt: at.Add(time.Second)}},
	} {
		if !tt.first.FollowedBy(tt.second) || tt.second.FollowedBy(tt.first) {
			t.Errorf("%s: %v, %v", name, tt.first.FollowedBy(tt.second), tt.second.FollowedBy(tt.first))
		}
	}
}
