UPDATE users SET seen_at = 1;
