UPDATE run_logs SET missing = 1;
