UPDATE users SET active_team = 't';
