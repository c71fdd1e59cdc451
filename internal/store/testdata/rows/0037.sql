INSERT INTO workflow_sources (workflow_id, source, due_at) SELECT id, '{"git":"https://example.org/x"}', 1 FROM workflows LIMIT 1;
