-- +goose Up

-- What happened in a team that somebody wants to know of.
CREATE TABLE notifications (
    id         TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    topic      TEXT NOT NULL,
    type       TEXT NOT NULL, -- such as run.failed
    title      TEXT NOT NULL,
    text       TEXT NOT NULL,
    path       TEXT NOT NULL, -- in the app
    in_app     BOOLEAN NOT NULL,
    mail_due   BOOLEAN NOT NULL, -- the next mail names it
    created_at BIGINT NOT NULL,
    read_at    BIGINT
);
CREATE INDEX notifications_by_user ON notifications (user_id, team_id, id);
CREATE INDEX notifications_unread ON notifications (user_id, team_id) WHERE in_app AND read_at IS NULL;
CREATE INDEX notifications_to_mail ON notifications (user_id, created_at) WHERE mail_due;
CREATE INDEX notifications_by_age ON notifications (created_at);

-- What somebody wants to know of, where that is not what everybody does.
CREATE TABLE notification_choices (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    topic   TEXT NOT NULL,
    app     BOOLEAN NOT NULL,
    mail    BOOLEAN NOT NULL,
    PRIMARY KEY (user_id, topic)
);

-- When somebody last got a mail.
CREATE TABLE notification_mails (
    user_id TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    sent_at BIGINT NOT NULL
);
