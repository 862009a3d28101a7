-- A name of an admission token, such as that of its entrance; empty for none.
ALTER TABLE tokens ADD COLUMN name TEXT NOT NULL DEFAULT '';
