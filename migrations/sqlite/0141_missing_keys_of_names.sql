-- Each start looks for rows without a key of their name, which a server of an earlier version wrote.
CREATE INDEX sections_without_folded_name ON sections (id) WHERE folded_name IS NULL;
CREATE INDEX modifiers_without_folded_name ON modifiers (id) WHERE folded_name IS NULL;
