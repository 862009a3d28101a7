-- True if an event was staged at the venue that was removed or changed afterwards. Such a venue can't be removed.
ALTER TABLE venues ADD COLUMN staged BOOLEAN NOT NULL DEFAULT FALSE;
