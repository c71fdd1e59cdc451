INSERT INTO budgets (id, team_id, scope, subject, month, amount, alert_at, hard, period, spent, held, alerted) SELECT 'bud', team_id, 'user', user_id, '', 1, '[50]', TRUE, '2026-11', 0, 1, 0 FROM memberships LIMIT 1;
INSERT INTO budget_holds (budget_id, hold_id, amount) VALUES ('bud', 'run', 1);
