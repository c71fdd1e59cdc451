INSERT INTO team_usage (team_id, vcpu_ms, at) SELECT id, 1000, 1 FROM teams LIMIT 1;
INSERT INTO workers (owner, host, vcpu, ram_gb, gpu, problem, disk_low, seen_at) VALUES ('w', 'h', 2, 8, 0, '', FALSE, 1);
