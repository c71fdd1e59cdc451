package builtin

import (
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/identity"
)

// touches remembers when the use of an API token was last noted, so that
// reading does not become writing.
type touches struct {
	mu sync.Mutex
	at map[string]time.Time
}

const touchPause = time.Minute

func (t *touches) due(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.at[id]) < touchPause {
		return false
	}
	if t.at == nil || len(t.at) >= maxSeenTokens {
		t.at = map[string]time.Time{}
	}
	t.at[id] = now
	return true
}

// bounded keeps an API token within the role it was made for.
func bounded(p identity.Presence) identity.Presence {
	for i := range p.Memberships {
		p.Memberships[i].Role = access.Lesser(p.Memberships[i].Role, p.Most)
	}
	return p
}
