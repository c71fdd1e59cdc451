INSERT INTO erasures (team_id, counts, closed_at, lease_until, sweep_at, sweep_until) VALUES ('gone', '{}', 1, 0, 2, 3);
INSERT INTO kept_invoices (id, number, status, amount, currency, description, created_at) VALUES ('kept', '1', 'paid', 1, 'usd', '', 1);
