-- The account that has or had the e-mail address of a mail, so that the erasure of the account also deletes mails to its earlier
-- addresses. Null in mails that are sent to the address that an account has then, and in mails of the version before.
ALTER TABLE outbox ADD COLUMN address_account_id BIGINT REFERENCES accounts (id);
