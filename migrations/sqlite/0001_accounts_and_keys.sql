-- People, and the keys with which programs speak for them.
-- Times are microseconds since 1970 in UTC, identifiers the API's 14 digits; both are plain integers on both databases.

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL CONSTRAINT accounts_number_key UNIQUE,
    username TEXT NOT NULL,
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    role TEXT NOT NULL,
    verified BOOLEAN NOT NULL,
    activated BOOLEAN NOT NULL,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    title TEXT NOT NULL,
    date_of_birth TEXT,
    phone TEXT NOT NULL,
    country TEXT NOT NULL,
    first_address_line TEXT NOT NULL,
    second_address_line TEXT NOT NULL,
    city TEXT NOT NULL,
    state TEXT NOT NULL
);
-- Usernames and e-mails are unique without regard to case.
CREATE UNIQUE INDEX accounts_username_key ON accounts (lower(username));
CREATE UNIQUE INDEX accounts_email_key ON accounts (lower(email));

-- One table for every kind of key, so that a request costs one look-up whatever its key is.
-- Only the SHA-256 of a key is kept. An admission key belongs to a token (0005), the others to an account;
-- an application's own key belongs to nobody.
CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL CONSTRAINT api_keys_hash_key UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    account_id BIGINT REFERENCES accounts (id),
    token_id BIGINT,
    created BIGINT NOT NULL,
    expires BIGINT,
    ended BIGINT
);
CREATE INDEX api_keys_account ON api_keys (account_id);
CREATE INDEX api_keys_token ON api_keys (token_id);
