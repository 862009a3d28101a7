-- A claimed ticket is replaced by a new one with another serial number, so that the sender's copy no longer admits. The old row
-- stays, Void: devices at the entrance read it in the list of changes, and the history of transfers refers to it.
ALTER TABLE tickets ADD COLUMN replaced_by BIGINT REFERENCES tickets (id);
-- Devices at the entrance ask for the changes of an event's tickets again and again.
CREATE INDEX tickets_event_modified ON tickets (event_id, modified);
