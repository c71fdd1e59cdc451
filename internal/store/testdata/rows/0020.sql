UPDATE upkeep_lease SET owner = 'a server', fence = 1, until = 1;
INSERT INTO chores (name, succeeded_at) VALUES ('expired-rows', 1);
INSERT INTO backup_marks (id, until) VALUES ('b', 1);
INSERT INTO team_retention (team_id, logs) VALUES ('t', 30);
INSERT INTO retention_progress (team_id, kind, until) VALUES ('t', 'logs', 1);
