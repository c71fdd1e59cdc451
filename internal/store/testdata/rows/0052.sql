UPDATE webhooks SET format = 'custom', template = '{"text": "{{title}}"}';
