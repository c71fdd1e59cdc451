-- +goose Up

-- How many bytes of the database a team's definitions take: workflows with their
-- revisions and live documents, what runs were given, and answers that can be repeated.
-- Beyond an allowance they count as storage.
ALTER TABLE storage ADD COLUMN definitions BIGINT NOT NULL DEFAULT 0;

-- Whose answers they are. Those of before have no team, are not counted, and go within a day.
ALTER TABLE answers ADD COLUMN team_id TEXT NOT NULL DEFAULT '';

INSERT INTO storage (team_id, bytes) SELECT id, 0 FROM teams WHERE id NOT IN (SELECT team_id FROM storage);
UPDATE storage SET definitions =
	COALESCE((SELECT CAST(SUM(octet_length(w.description)) AS BIGINT) FROM workflows w WHERE w.team_id = storage.team_id), 0) +
	COALESCE((SELECT CAST(SUM(octet_length(r.definition) + octet_length(r.problems)) AS BIGINT)
		FROM workflow_revisions r JOIN workflows w ON w.id = r.workflow_id WHERE w.team_id = storage.team_id), 0) +
	COALESCE((SELECT CAST(SUM(octet_length(s.data)) AS BIGINT)
		FROM document_snapshots s JOIN workflows w ON w.id = s.workflow_id WHERE w.team_id = storage.team_id), 0) +
	COALESCE((SELECT CAST(SUM(octet_length(u.data)) AS BIGINT)
		FROM document_updates u JOIN workflows w ON w.id = u.workflow_id WHERE w.team_id = storage.team_id), 0) +
	COALESCE((SELECT CAST(SUM(octet_length(r.definition) + octet_length(r.parameters) + octet_length(r.inputs)) AS BIGINT)
		FROM runs r WHERE r.team_id = storage.team_id AND r.kind <> 'reported'), 0);
