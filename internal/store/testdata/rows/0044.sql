UPDATE run_attempts SET machine = 'n1', job = '7', inspect = 'scontrol show job 7', began_at = 1;
