-- The audit trail: who asked for which change when, and what came of it. It outlives what it names, so nothing in it is a
-- foreign key; and it holds identifiers alone, so that it may stay when an account is erased.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at BIGINT NOT NULL,
    key_id BIGINT NOT NULL,
    -- None where the key is an application's, behind which stands no person, or an admission token's.
    account_id BIGINT,
    operation TEXT NOT NULL,
    -- The path that was asked for, without what is secret in it.
    resource TEXT NOT NULL,
    -- What was answered; the error's code where it was refused.
    status BIGINT NOT NULL,
    code TEXT,
    -- The request's identifier, under which the log has it too.
    request TEXT NOT NULL
);
-- What it is searched by, each with the newest first: an index of SQLite has the row's identifier at its end.
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_key ON audit (key_id);
CREATE INDEX audit_account ON audit (account_id);
CREATE INDEX audit_operation ON audit (operation);
CREATE INDEX audit_resource ON audit (resource);

-- Rows are added and never changed, whatever the code does.
CREATE TRIGGER audit_is_not_updated BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is append-only');
END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is append-only');
END;
