INSERT INTO attempts (id, run_id, scope, fence, about, sealed, session, renewals, state, exit_record, outcome, log_size, submitted_at) VALUES ('run_1.a.0.1', 'run_1', 'k', 'f', '{}', '', '', 0, '', '', '', 1, 1);
INSERT INTO attempt_logs (attempt_id, start, size, text, marks) VALUES ('run_1.a.0.1', 0, 1, 'x', '');
