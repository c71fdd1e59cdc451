package environments

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

// A full disk of ours is not the author's to mend; a channel that fails is.
func TestWhoseFailureItIs(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	o := &ours{w: full}
	_, _ = o.Write([]byte("x"))
	if err := o.outcome(errors.New("it cannot be fetched"), full.Close()); !errors.Is(err, syscall.ENOSPC) || fault.KindOf(err) != fault.KindInternal {
		t.Errorf("a full disk: %v", err)
	}
	o = &ours{}
	if err := o.outcome(errors.New("the channel answered 404"), nil); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("a channel: %v", err)
	}
	if err := o.outcome(nil, nil); err != nil {
		t.Error(err)
	}
}
