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

// An event says of its subscription what it says, and what ended stays so.
func TestWhatAnEventSaysOfItsSubscription(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	e := PaymentEvent{Kind: PlanChanged, Subscription: "sub_1", Plan: "pro", State: "active", Before: "trialing", Began: true, Created: at}
	want := Subscription{ID: "sub_1", Plan: "pro", State: "active", Before: "trialing", Began: true, EventAt: at}
	if got := e.SubscriptionState(); got != want {
		t.Errorf("%+v", got)
	}
	e.Ended = true
	ended := e.SubscriptionState()
	for _, next := range []Subscription{{EventAt: at.Add(time.Hour)}, {Ended: true, EventAt: at.Add(time.Hour)}, {Began: true, EventAt: at}} {
		if !ended.Ended || ended.FollowedBy(next) {
			t.Errorf("after the end comes %+v", next)
		}
	}
	if early := (Subscription{EventAt: at.Add(time.Hour)}); early.FollowedBy(Subscription{EventAt: at}) || !early.FollowedBy(ended) {
		t.Error("old news is taken for new, or the end is missed")
	}
}
