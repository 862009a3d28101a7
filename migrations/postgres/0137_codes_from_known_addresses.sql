-- True if the code was requested from an address from which someone had signed in to the account. Such codes have limits of their own,
-- so that a client elsewhere can't use up those of the account's owner.
ALTER TABLE codes ADD COLUMN known_address BOOLEAN NOT NULL DEFAULT FALSE;
