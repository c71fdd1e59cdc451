UPDATE schedules SET retries = 1, retry_at = 1;
