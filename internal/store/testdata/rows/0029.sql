INSERT INTO audit (chain, seq, at, actor_type, actor_id, actor_name, action, target, via, address, request_id, prev, hash) SELECT id, 1, 1, 'user', 'u', 'U', 'secret.set', 'TOKEN', 'session', '', 'req', '', 'x' FROM teams LIMIT 1;
INSERT INTO audit_chains (chain, seq, hash, first_seq, anchor, code) SELECT id, 1, 'x', 1, '', 'y' FROM teams LIMIT 1;
