-- +goose Up

-- What a file takes in the database is counted with the definitions, so that empty ones
-- count, too.
INSERT INTO storage (team_id, bytes) SELECT id, 0 FROM teams WHERE id NOT IN (SELECT team_id FROM storage);
UPDATE storage SET definitions = definitions + 512 * (SELECT COUNT(*) FROM files f WHERE f.team_id = storage.team_id);
