package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
)

// exited explains a command that failed by itself.
func (c *carrier) exited(ctx context.Context, t *try, s executor.Seen) string {
	said := fmt.Sprintf("Node %s exited with status %d", t.node.ID, s.Exit.Code)
	if executor.NestedSandbox(c.lastOf(ctx, t)) {
		said += ": it tried to start a sandbox or container of its own, which a task cannot. Set `image` on the node, or switch the tool's own sandbox off"
	}
	return said
}

// lastOf is the end of an attempt's log.
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
