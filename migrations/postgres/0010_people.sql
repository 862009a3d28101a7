-- What people prefer, and accounts of which only the number is left.

-- A region may be removed whoever prefers it; their preference goes with it.
CREATE TABLE account_preferences (
    account_id BIGINT PRIMARY KEY REFERENCES accounts (id),
    region_id BIGINT REFERENCES regions (id) ON DELETE SET NULL
);
CREATE INDEX account_preferences_region ON account_preferences (region_id);

-- A removed account's row stays, empty, because orders and tickets name it for the books; to everything else it is gone.
ALTER TABLE accounts ADD COLUMN removed BOOLEAN NOT NULL DEFAULT false;
