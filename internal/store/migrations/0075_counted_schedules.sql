-- +goose Up

-- What the runs of schedules and triggers are given, and what was reported of runs, is
-- counted with the definitions.
INSERT INTO storage (team_id, bytes) SELECT id, 0 FROM teams WHERE id NOT IN (SELECT team_id FROM storage);
UPDATE storage SET definitions = definitions +
	COALESCE((SELECT CAST(SUM(octet_length(s.given)) AS BIGINT) FROM schedules s WHERE s.team_id = storage.team_id), 0) +
	COALESCE((SELECT CAST(SUM(octet_length(t.given) + octet_length(t.mapped)) AS BIGINT) FROM triggers t WHERE t.team_id = storage.team_id), 0) +
	COALESCE((SELECT CAST(SUM(octet_length(r.definition) + octet_length(r.inputs)) AS BIGINT)
		FROM runs r WHERE r.team_id = storage.team_id AND r.kind = 'reported'), 0) +
	COALESCE((SELECT CAST(SUM(p.text_bytes + octet_length(p.edges)) AS BIGINT) FROM reported_runs p WHERE p.team_id = storage.team_id), 0);
