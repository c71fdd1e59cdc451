INSERT INTO group_mapping (group_name, team_id, role, place) VALUES ('lab', 't', 'member', 0);
INSERT INTO mapped_members (team_id, user_id, issuer, group_name, kept_role) VALUES ('t', 'u', 'https://login.example.org', 'lab', '');
