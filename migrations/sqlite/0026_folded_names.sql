-- The keys by which names and titles are compared and searched: normalized to NFKC, case-folded, and with single spaces. SQL can't
-- compute them on both databases, so the server writes them, and at its start those of the rows that have none. The constraints on
-- the names themselves stay: a row whose name equals another one's by its key from before has a key with its number.
ALTER TABLE regions ADD COLUMN folded_name TEXT;
ALTER TABLE venues ADD COLUMN folded_name TEXT;
ALTER TABLE categories ADD COLUMN folded_name TEXT;
ALTER TABLE hosts ADD COLUMN folded_name TEXT;
ALTER TABLE events ADD COLUMN folded_title TEXT;
ALTER TABLE advertisements ADD COLUMN folded_name TEXT;
ALTER TABLE sections ADD COLUMN folded_name TEXT;
ALTER TABLE modifiers ADD COLUMN folded_name TEXT;
CREATE UNIQUE INDEX regions_folded_name_key ON regions (folded_name);
CREATE UNIQUE INDEX venues_folded_name_key ON venues (folded_name);
CREATE UNIQUE INDEX categories_folded_name_key ON categories (folded_name);
CREATE UNIQUE INDEX hosts_folded_name_key ON hosts (folded_name) WHERE NOT removed;
CREATE UNIQUE INDEX events_folded_title_key ON events (folded_title);
CREATE UNIQUE INDEX advertisements_folded_name_key ON advertisements (folded_name);
CREATE UNIQUE INDEX sections_event_id_folded_name_key ON sections (event_id, folded_name);
CREATE UNIQUE INDEX modifiers_section_id_folded_name_key ON modifiers (section_id, folded_name);
