-- Accounts that were created for e-mail addresses to which tickets were given, until their owners set a password.
ALTER TABLE accounts ADD COLUMN guest BOOLEAN NOT NULL DEFAULT false;
