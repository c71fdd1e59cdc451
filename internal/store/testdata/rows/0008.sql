INSERT INTO share_invites (id, team_id, workflow_id, role, token_hash, token_hint, expires_hours, expires_at, max_uses, max_credits, created_by, created_at) VALUES ('i', 't', 'w', 'editor', 'h', 'abcd', 1, 1, 0, 0, 'u', 1);
INSERT INTO guests (id, invite_id, visitor, name, token_hash, joined_at, seen_at) VALUES ('g', 'i', 'v', 'G', 'h', 1, 1);
INSERT INTO documents (workflow_id, epoch, seq, settled_seq, snapshot, snapshot_seq, updated_at) VALUES ('w', 1, 1, 1, 'x', 0, 1);
INSERT INTO document_updates (workflow_id, seq, data, user_id, guest_id, guest_name, at) VALUES ('w', 1, 'x', 'u', '', '', 1);
