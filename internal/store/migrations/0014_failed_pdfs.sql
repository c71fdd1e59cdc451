-- +goose Up

-- PDFs of a day that could not be read, by who brought them: a team, a visitor,
-- and the address of a visitor.
CREATE TABLE failed_pdfs (
    day    BIGINT NOT NULL,
    who    TEXT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (day, who)
);
