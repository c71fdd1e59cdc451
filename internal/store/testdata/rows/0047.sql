INSERT INTO followed_repositories (workflow_id, source, commit_id, refreshed_at) SELECT id, '{"git":"https://example.org/x"}', '3f786850e387550fdab836ed7e6dc881de23001b', 1 FROM workflows LIMIT 1;
