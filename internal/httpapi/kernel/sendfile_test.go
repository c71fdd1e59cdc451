package kernel

import (
	"io"
	"net/http"
	"testing"
)

// What stands between a file and the network must let the kernel do the
// copying.
func TestTheWriterOfAnswersTakesFilesWhole(t *testing.T) {
	t.Parallel()
	var w http.ResponseWriter = &Writer{}
	if _, ok := w.(io.ReaderFrom); !ok {
		t.Error("an answer copies files through memory")
	}
}
