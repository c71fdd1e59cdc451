-- +goose Up

-- A snapshot lies apart from its document: every change of a document writes
-- the document's row, and in SQLite a row is read and written whole.
CREATE TABLE document_snapshots (
    workflow_id TEXT PRIMARY KEY REFERENCES documents (workflow_id) ON DELETE CASCADE,
    data        BYTEA NOT NULL
);
INSERT INTO document_snapshots (workflow_id, data) SELECT workflow_id, snapshot FROM documents;
ALTER TABLE documents DROP COLUMN snapshot;
