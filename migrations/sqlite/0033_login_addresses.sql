-- Addresses from which someone has signed in to an account in the last 30 days, at most ten of an account. A log-in from one of
-- them is accepted even if an attacker has used up the account's limit of failed log-ins.
CREATE TABLE login_addresses (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    -- 24 bits of the SHA-256 of account and address: enough to recognize an address, too few to find out which one it was.
    address TEXT NOT NULL,
    seen BIGINT NOT NULL,
    PRIMARY KEY (account_id, address)
);
CREATE INDEX login_addresses_seen ON login_addresses (seen);
