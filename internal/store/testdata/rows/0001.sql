INSERT INTO secret_check (id, sealed) VALUES (2, 'x');
INSERT INTO signing_keys (id, sealed, active_from, retires_at) VALUES ('k', 'x', 1, 2);
INSERT INTO users (id, email, name, password_hash, created_at) VALUES ('u', 'ada@example.org', 'Ada', 'h', 1);
INSERT INTO teams (id, name, plan, created_at) VALUES ('t', 'Team', 'free', 1);
INSERT INTO memberships (team_id, user_id, role, joined_at) VALUES ('t', 'u', 'owner', 1);
INSERT INTO sessions (id, user_id, secret_hash, origin, user_agent, address, created_at, last_seen_at, expires_at) VALUES ('s', 'u', 'h', '', '', '', 1, 1, 2);
INSERT INTO invitations (id, team_id, email, role, token_hash, invited_by, created_at, expires_at) VALUES ('i', 't', 'bob@example.org', 'member', 'h', 'u', 1, 2);
