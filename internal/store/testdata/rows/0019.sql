UPDATE runs SET lease_until = 1 WHERE id = 'r';
