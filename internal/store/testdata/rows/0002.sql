INSERT INTO rate_hits (bucket, at, expires_at) VALUES ('b', 1, 2);
INSERT INTO answers (scope, key, fingerprint, status, sealed, created_at) VALUES ('s', 'k', 'f', 201, 'x', 1);
INSERT INTO outbox (id, sealed, created_at, next_at) VALUES ('o', 'x', 1, 0);
