UPDATE oauth_grants SET scopes = 'read';
