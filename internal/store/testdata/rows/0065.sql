UPDATE access_tokens SET life = 1;
