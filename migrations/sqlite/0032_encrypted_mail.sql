-- The text of a mail is encrypted, because a database file and its log keep deleted content for a while, and a mail may contain a
-- code that sets a password. `key_id` identifies the key, which is in a file of the server; mails without it are from earlier
-- versions and not encrypted. A mail with a code is useless once the code has expired, so it is given up then.
ALTER TABLE outbox ADD COLUMN key_id TEXT;
ALTER TABLE outbox ADD COLUMN expires BIGINT;
