UPDATE environments SET used_at = 2 WHERE key = 'key';
