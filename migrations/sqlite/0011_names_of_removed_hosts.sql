-- no-transaction
-- The name of a removed host is free for another one: a name is unique among the hosts that there are.
-- SQLite can't drop the constraint, so that the table is made anew, as SQLite's documentation tells: with foreign keys switched
-- off, which is possible only outside of a transaction, so that what refers to the hosts stays as it is.

PRAGMA foreign_keys = OFF;
BEGIN IMMEDIATE;
CREATE TABLE hosts_new (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    contact TEXT NOT NULL,
    email TEXT NOT NULL,
    description TEXT NOT NULL,
    phone TEXT NOT NULL,
    website TEXT NOT NULL,
    country TEXT NOT NULL,
    first_address_line TEXT NOT NULL,
    second_address_line TEXT NOT NULL,
    city TEXT NOT NULL,
    state TEXT NOT NULL,
    business_no TEXT NOT NULL,
    -- A removed host's events stay and its tickets remain valid, so the row stays too.
    removed BOOLEAN NOT NULL
);
INSERT INTO hosts_new (id, name, contact, email, description, phone, website, country, first_address_line, second_address_line,
    city, state, business_no, removed)
SELECT id, name, contact, email, description, phone, website, country, first_address_line, second_address_line,
    city, state, business_no, removed FROM hosts;
DROP TABLE hosts;
ALTER TABLE hosts_new RENAME TO hosts;
CREATE UNIQUE INDEX hosts_name_key ON hosts (name) WHERE NOT removed;
COMMIT;
PRAGMA foreign_keys = ON;
