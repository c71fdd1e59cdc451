-- +goose Up

-- The files that runs of a workflow were given, which its guests may use.
CREATE TABLE workflow_inputs (
    workflow_id TEXT NOT NULL,
    key         TEXT NOT NULL,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    PRIMARY KEY (workflow_id, key)
);
CREATE INDEX workflow_inputs_by_team ON workflow_inputs (team_id);

INSERT INTO workflow_inputs (workflow_id, key, team_id)
SELECT DISTINCT r.workflow_id, k.value, r.team_id
FROM runs r JOIN workflows w ON w.id = r.workflow_id, json_each(r.inputs::json) i, json_array_elements_text(i.value) k (value)
WHERE r.kind <> 'reported' AND r.inputs NOT IN ('', '{}') AND k.value LIKE 'teams/%';
UPDATE storage SET definitions = definitions + COALESCE((SELECT SUM(octet_length(key)) FROM workflow_inputs WHERE team_id = storage.team_id), 0);
