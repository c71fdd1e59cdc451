UPDATE invitations SET link_hash = 'l' WHERE mailed_at = created_at;
UPDATE teams SET credits_wait_for = 'u' WHERE id = 't';
