package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
)

// nested are the words with which programs say that they could not make a
// sandbox of their own, which the sandbox of a task refuses them.
var nested = []string{
	"bwrap: ", "unshare: unshare failed", "failed to create user namespace", "creating new namespace failed", "no usable sandbox",
	"could not create user namespace", "user namespace: operation not permitted",
}

// exited explains a command that failed by itself.
func (c *carrier) exited(ctx context.Context, t *try, s executor.Seen) string {
	said := fmt.Sprintf("Node %s exited with status %d", t.node.ID, s.Exit.Code)
	text := strings.ToLower(c.lastOf(ctx, t))
	for _, words := range nested {
		if strings.Contains(text, words) {
			return said + ": it tried to start a sandbox or container of its own, which a task cannot. Set `image` on the node, or switch the tool's own sandbox off"
		}
	}
	return said
}

// lastOf is the end of a try's log.
func (c *carrier) lastOf(ctx context.Context, t *try) string {
	r, err := c.e.Driver.Logs(ctx, t.handle, max(0, t.logged-tail))
	if err != nil {
		return ""
	}
	defer r.Close()
	text := make([]byte, tail)
	n, _ := readFull(r, text)
	return strings.ToValidUTF8(string(text[:n]), "�")
}
