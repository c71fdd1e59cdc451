package runs

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
)

func TestFetchedBytesAreShown(t *testing.T) {
	t.Parallel()
	const want = " 25 %  fetching inputs: 3.0 GB of 12.0 GB"
	if got := fetchingLine(api.Fetching{FetchedBytes: 3 << 30, TotalBytes: 12 << 30}); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
