-- +goose Up

-- Only running runs have leases. The others are most of the table.
DROP INDEX runs_by_lease;
CREATE INDEX runs_by_lease ON runs (lease_until) WHERE status = 'running';
