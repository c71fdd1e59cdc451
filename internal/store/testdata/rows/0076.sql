UPDATE audit SET target_name = 'Token';
