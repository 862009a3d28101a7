-- Requests that carried an Idempotency-Key, so that each has one effect however often it is sent, through whichever server.
CREATE TABLE idempotency (
    -- Whose it is.
    key_id BIGINT NOT NULL,
    -- The SHA-256 of the Idempotency-Key.
    hash TEXT NOT NULL,
    -- A keyed hash of what was asked for, which tells nobody else anything.
    fingerprint TEXT NOT NULL,
    -- Which of several that came to it one after the other has it, by a number drawn at random.
    attempt BIGINT NOT NULL,
    claimed BIGINT NOT NULL,
    -- None while it is under way. Encrypted with what the caller alone has: it may show a key that is shown once.
    answer BYTEA,
    PRIMARY KEY (key_id, hash)
);
-- A job deletes those of which nobody asks any more.
CREATE INDEX idempotency_claimed ON idempotency (claimed);
