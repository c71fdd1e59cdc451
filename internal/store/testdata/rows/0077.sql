UPDATE users SET changes_until = 1;
