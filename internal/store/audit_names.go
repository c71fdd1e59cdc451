package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"

	"github.com/millrace/millrace/internal/domain/ids"
)

// targetNames finds the ids of a list, at %[1]s, that a team has, with what people call them.
const targetNames = `
	SELECT id, name FROM workflows WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT id, '#' || number || ' of ' || workflow_name FROM runs WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT id, name FROM sweeps WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT id, name FROM connections WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT id, title FROM analyses WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT key, name FROM files WHERE team_id = $1 AND key IN (%[1]s)
	UNION ALL SELECT key, name FROM reservations WHERE team_id = $1 AND key IN (%[1]s)
	UNION ALL SELECT id, email FROM invitations WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT id, name FROM teams WHERE id = $1 AND id IN (%[1]s)
	UNION ALL SELECT l.id, '#' || r.number || ' of ' || r.workflow_name FROM result_links l JOIN runs r ON r.id = l.run_id WHERE l.team_id = $1 AND l.id IN (%[1]s)
	UNION ALL SELECT i.id, w.name FROM share_invites i JOIN workflows w ON w.id = i.workflow_id WHERE w.team_id = $1 AND i.id IN (%[1]s)
	UNION ALL SELECT s.id, w.name FROM schedules s JOIN workflows w ON w.id = s.workflow_id WHERE s.team_id = $1 AND s.id IN (%[1]s)
	UNION ALL SELECT t.id, w.name FROM triggers t JOIN workflows w ON w.id = t.workflow_id WHERE t.team_id = $1 AND t.id IN (%[1]s)
	UNION ALL SELECT u.id, u.name FROM users u JOIN memberships m ON m.user_id = u.id WHERE m.team_id = $1 AND u.id IN (%[1]s)
	UNION ALL SELECT t.id, t.name FROM access_tokens t JOIN memberships m ON m.user_id = t.user_id WHERE m.team_id = $1 AND t.id IN (%[1]s)
	UNION ALL SELECT c.id, c.name FROM oauth_clients c JOIN oauth_consents o ON o.client_id = c.id JOIN memberships m ON m.user_id = o.user_id
		WHERE m.team_id = $1 AND c.id IN (%[1]s)`

// webhookTargets finds the ids of webhooks and of messages, at %[1]s, with the webhook's address.
const webhookTargets = `
	SELECT id, id, sealed_url FROM webhooks WHERE team_id = $1 AND id IN (%[1]s)
	UNION ALL SELECT d.id, w.id, w.sealed_url FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.team_id = $1 AND d.id IN (%[1]s)`

// TargetNames are what those of the targets are called that a team has and that
// have a name.
func (db *DB) TargetNames(ctx context.Context, team ids.Team, targets []string) (map[string]string, error) {
	names := map[string]string{}
	targets = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(targets))), func(target string) bool { return target == "" })
	if len(targets) == 0 {
		return names, nil
	}
	args, in := append([]any{team}, anys(targets)...), placeholders(2, len(targets))
	type named struct{ id, name string }
	found, err := all(ctx, db, func(r *sql.Rows, n *named) error { return r.Scan(&n.id, &n.name) }, fmt.Sprintf(targetNames, in), args...)
	if err != nil {
		return nil, err
	}
	hosts, err := all(ctx, db, func(r *sql.Rows, n *named) (err error) { n.id, n.name, err = db.webhookHost(r); return err }, fmt.Sprintf(webhookTargets, in), args...)
	for _, n := range append(found, hosts...) {
		names[n.id] = n.name
	}
	return names, err
}

// webhookHost is a target with the host of its webhook. The rest of the address is a secret.
func (db *DB) webhookHost(row scanner) (target, host string, err error) {
	var id ids.Webhook
	var sealed []byte
	if err := row.Scan(&target, (*string)(&id), &sealed); err != nil {
		return "", "", err
	}
	address, err := db.sealer.open(webhookAddressPlace(id), sealed)
	if err != nil {
		return target, "", nil // of an earlier version, and not sealed yet
	}
	u, err := url.Parse(string(address))
	if err != nil {
		return target, "", nil
	}
	return target, u.Host, nil
}
