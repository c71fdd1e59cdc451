package images

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/safedial"
)

func TestRefusalNamesARegistryThatIsTooSlow(t *testing.T) {
	t.Parallel()
	ref, err := name.ParseReference("slow.example.org/lab/tool:1")
	if err != nil {
		t.Fatal(err)
	}
	said := (&Store{}).explain(t.Context(), ref, fmt.Errorf("reading a layer: %w", safedial.ErrSlow))
	if !fault.Is(said, fault.KindUnavailable) || !strings.Contains(said.Error(), "slow.example.org") || !strings.Contains(said.Error(), "sends too slowly") {
		t.Error(said)
	}
}
