package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/operator"
)

// However many requests fail, the newest are kept and no more.
func TestTheNewestFailuresAreKept(t *testing.T) {
	eachLedger(t, func(t *testing.T, db *DB) {
		for i := range keptFailures + 20 {
			if err := db.RecordFailure(t.Context(), operator.Failure{At: time.UnixMicro(int64(i)), RequestID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Failures(t.Context(), 10*keptFailures)
		if err != nil || len(list) != keptFailures || list[0].RequestID != fmt.Sprint(keptFailures+19) {
			t.Errorf("%d are kept, the newest %+v, %v", len(list), list[0], err)
		}
	})
}
