INSERT INTO output_copies (run_id, url, connection_id, state) SELECT id, 's3://lab/out/', 'conn', 'waiting' FROM runs LIMIT 1;
