-- The text in which gates search for the holder of a ticket: first name, last name, username and e-mail address, normalized to NFKC
-- and case-folded. SQL can't compute it on both databases, so the server writes it, and at its start that of the rows that have none.
ALTER TABLE accounts ADD COLUMN folded_names TEXT;
CREATE INDEX accounts_without_folded_names ON accounts (id) WHERE folded_names IS NULL;
