-- An entry counts several rejected requests with public keys, so that a client without an account can't fill the log.
ALTER TABLE audit ADD COLUMN count BIGINT NOT NULL DEFAULT 1;
-- The user of the operating system who ran a command of `boxoffice admin`. Null for a request.
ALTER TABLE audit ADD COLUMN operator TEXT;

-- Entries before this time may be deleted. It is 0 except within the transactions of the job that applies the retention.
CREATE TABLE audit_retention (deletable_before BIGINT NOT NULL);
INSERT INTO audit_retention (deletable_before) VALUES (0);
CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF old.at < (SELECT r.deletable_before FROM audit_retention r) THEN
            RETURN old;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only';
END
$$;

-- Rows that the job deletes, by the time that decides.
CREATE INDEX codes_expires ON codes (expires);
CREATE INDEX api_keys_sessions ON api_keys (expires) WHERE kind = 'session';
CREATE INDEX orders_unpaid ON orders (placed) WHERE status IN ('Timed Out', 'Cancelled');
CREATE INDEX outbox_failed ON outbox (failed) WHERE failed IS NOT NULL;
