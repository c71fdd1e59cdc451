INSERT INTO user_identities (issuer, subject, user_id, created_at) VALUES ('https://i', 's', 'u', 1);
