package store_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestTheFirstLockOfAnEnvironmentCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, a, b := t.Context(), storetest.Owner(t, db, "ada"), storetest.Owner(t, db, "bob")
		one := environments.Build{Key: "k", Spec: "{}", State: environments.Building, UpdatedAt: time.Now()}
		for _, step := range []struct{ lock, want string }{{"", ""}, {"first", "first"}, {"second", "first"}, {"", "first"}} {
			one.Lock = step.lock
			if got, err := db.SaveEnvironmentBuild(ctx, a.Team, one); err != nil || got != step.want {
				t.Errorf("after %q the lock is %q, %v", step.lock, got, err)
			}
		}
		one.State, one.Error, one.Log = environments.Failed, "why", "log"
		if _, err := db.SaveEnvironmentBuild(ctx, a.Team, one); err != nil {
			t.Fatal(err)
		}
		if got, err := db.EnvironmentBuild(ctx, a.Team, "k"); err != nil || got.Lock != "first" || got.State != environments.Failed || got.Error != "why" || got.Log != "log" {
			t.Errorf("it is %+v, %v", got, err)
		}
		if _, err := db.EnvironmentBuild(ctx, b.Team, "k"); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team finds it: %v", err)
		}
		if list, err := db.EnvironmentBuilds(ctx, a.Team, "", 10); err != nil || len(list) != 1 || list[0].Log != "" {
			t.Errorf("the list is %+v, %v", list, err)
		}
		if list, err := db.EnvironmentBuilds(ctx, a.Team, "k", 10); err != nil || len(list) != 0 {
			t.Errorf("after it come %+v, %v", list, err)
		}
	})
}
