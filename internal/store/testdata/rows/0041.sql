INSERT INTO notifications (id, user_id, team_id, topic, type, title, text, path, in_app, mail_due, created_at) SELECT 'ntf', user_id, team_id, 'ownRuns', 'run.failed', 'x', 'y', '/runs', TRUE, TRUE, 1 FROM memberships LIMIT 1;
INSERT INTO notification_choices (user_id, topic, app, mail) SELECT user_id, 'allRuns', TRUE, FALSE FROM memberships LIMIT 1;
INSERT INTO notification_mails (user_id, sent_at) SELECT user_id, 1 FROM memberships LIMIT 1;
