-- +goose Up

-- What the operators tell everybody; without a row, nothing.
CREATE TABLE notices (
    one        BIGINT PRIMARY KEY CHECK (one = 1),
    id         TEXT NOT NULL, -- another one each time that the notice is set
    text       TEXT NOT NULL,
    level      TEXT NOT NULL,
    until      BIGINT,        -- null: until it is removed
    created_at BIGINT NOT NULL
);

-- While there is a row, runs that have not started yet wait.
CREATE TABLE maintenance (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    message TEXT NOT NULL,
    since   BIGINT NOT NULL
);
