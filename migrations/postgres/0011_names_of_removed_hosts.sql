-- The name of a removed host is free for another one: a name is unique among the hosts that there are.
-- SQLite can't drop the constraint, and makes the table anew.

ALTER TABLE hosts DROP CONSTRAINT hosts_name_key;
CREATE UNIQUE INDEX hosts_name_key ON hosts (name) WHERE NOT removed;
