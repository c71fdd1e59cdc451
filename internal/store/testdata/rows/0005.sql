INSERT INTO blobs (key, team_id, size, refs, created_at) VALUES ('b', 't', 1, 1, 1);
INSERT INTO doomed_blobs (key) VALUES ('d');
INSERT INTO files (key, team_id, source, rank, id, name, content_type, size, blob_key, created_by, created_at) VALUES ('f', 't', 'upload', 0, 'f', 'n', 'text/plain', 1, 'b', 'u', 1);
INSERT INTO reservations (key, team_id, id, name, content_type, size, created_by, created_at, expires_at) VALUES ('r', 't', 'r', 'n', 'text/plain', 1, 'u', 1, 2);
INSERT INTO storage (team_id, bytes) VALUES ('t', 2);
