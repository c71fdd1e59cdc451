INSERT INTO users (id, email, name, password_hash, created_at, service_of, made_by) SELECT 'user_service', 'user_service', 'ci', '', 1, id, 'Ada' FROM teams LIMIT 1;
