-- The language of mail to an account; null for the platform's default. A mail is stored as the name of its template and the values
-- that are filled in when it is sent. A mail to an account is sent to the address that the account has then. Mails that an earlier
-- version has stored have a subject and a text instead of a template.
ALTER TABLE accounts ADD COLUMN language TEXT;
ALTER TABLE outbox ADD COLUMN template TEXT;
ALTER TABLE outbox ADD COLUMN account_id BIGINT REFERENCES accounts (id);
