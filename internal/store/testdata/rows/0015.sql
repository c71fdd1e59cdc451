UPDATE team_subscriptions SET id = 'sub' WHERE team_id = 't'; -- the migration made it
