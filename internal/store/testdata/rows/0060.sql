UPDATE reported_runs SET step = 's', attempt = 1, places = '{}';
