package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
)

// explainExit explains a command that failed by itself.
func (r *runner) explainExit(ctx context.Context, t *attempt, s executor.Status) string {
	said := fmt.Sprintf("Node %s exited with status %d", t.node.ID, s.Exit.Code)
	if executor.NestedSandbox(r.logTail(ctx, t)) {
		said += ": it tried to start a sandbox or container of its own, which a task cannot. Set `image` on the node, or switch the tool's own sandbox off"
	}
	return said
}

// logTail is the end of an attempt's log.
func (r *runner) logTail(ctx context.Context, t *attempt) string {
	log, err := r.e.Driver.Logs(ctx, t.handle, max(0, t.logged-logTailBytes))
	if err != nil {
		return ""
	}
	defer log.Close()
	text := make([]byte, logTailBytes)
	n, _ := readFull(log, text)
	return strings.ToValidUTF8(string(text[:n]), "�")
}
