INSERT INTO balances (team_id, period, granted, spent, monthly, top_up, held) VALUES ('t', 1, 1, 0, 1, 0, 0);
INSERT INTO ledger (id, team_id, type, source, source_id, monthly, top_up, description, created_at) VALUES ('l', 't', 'grant', 'month', '2026-08', 1, 0, '', 1);
INSERT INTO holds (id, team_id, amount, created_at) VALUES ('h', 't', 1, 1);
INSERT INTO orders (id, team_id, buyer_id, package_index, package_name, credits, amount, currency, secret_hash, secret, state, created_at, expires_at) VALUES ('o', 't', 'u', 0, 'P', 1, 1, 'usd', 'i', 'r', 'open', 1, 2);
INSERT INTO invoices (id, team_id, order_id, number, status, amount, currency, description, created_at) VALUES ('i', 't', 'o', '1', 'paid', 1, 'usd', '', 1);
INSERT INTO subscriptions (team_id, plan, told_at) VALUES ('t', 'pro', 1);
INSERT INTO storage_hours (team_id, hour, bytes, metered) VALUES ('t', 1, 1, TRUE);
INSERT INTO storage_carry (team_id, carry) VALUES ('t', 0);
