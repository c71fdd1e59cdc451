INSERT INTO operators (user_id, created_at) SELECT id, 1 FROM users LIMIT 1;
INSERT INTO request_failures (id, at, request_id, route, code, host) VALUES ('fail_1', 1, 'req_1', 'GET /api/runs', 'internal', 'host');
