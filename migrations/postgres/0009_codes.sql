-- Codes that were mailed to verify an account or to reset its password.
CREATE TABLE codes (
    -- SHA-256 of the identifier in the URI, which is a secret of whoever asked: knowing it is leave to try codes.
    hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    -- Where the code went. It counts only while this is still the account's address.
    email TEXT NOT NULL,
    -- SHA-256 of the identifier and the code. A code alone has too few digits for its hash to hide it.
    code_hash TEXT NOT NULL,
    expires BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    -- Pending, Used, or Closed by a newer one.
    status TEXT NOT NULL
);
CREATE INDEX codes_account ON codes (account_id, kind);
