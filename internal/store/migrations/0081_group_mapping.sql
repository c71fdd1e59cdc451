-- +goose Up

-- Which role people in a group at a provider have in which team.
CREATE TABLE group_mapping (
    group_name TEXT NOT NULL,
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    role       TEXT NOT NULL,
    place      BIGINT NOT NULL, -- in the order of the rules
    PRIMARY KEY (group_name, team_id)
);

-- Memberships that the mapping gave or raised, and which role people gave besides; empty: none.
CREATE TABLE mapped_members (
    team_id    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    issuer     TEXT NOT NULL,
    group_name TEXT NOT NULL,
    kept_role  TEXT NOT NULL,
    PRIMARY KEY (team_id, user_id),
    FOREIGN KEY (team_id, user_id) REFERENCES memberships (team_id, user_id) ON DELETE CASCADE
);
CREATE INDEX mapped_members_by_user ON mapped_members (user_id);
