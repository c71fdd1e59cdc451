UPDATE webhooks SET timeouts = 3, paused_until = 1;
