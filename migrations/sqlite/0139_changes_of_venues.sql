-- The time of the last change of a venue, for the calendar files of its events. Null if it was not changed, or only by a server of the
-- version before.
ALTER TABLE venues ADD COLUMN revised BIGINT;
-- The address of the venue as the holders of tickets know it. Null in the rows of a server of the version before.
ALTER TABLE event_notices ADD COLUMN address TEXT;
-- Other names and addresses of venues, until a job has stored a notice for each event there: a request stores none itself. The row has
-- the name and the address that the holders of tickets know.
CREATE TABLE venue_changes (
    venue_id INTEGER PRIMARY KEY REFERENCES venues (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    -- The events up to this one have their notice.
    last_event_id BIGINT NOT NULL
);
-- The job reads the events of a venue in the order of their identifiers.
CREATE INDEX events_of_venue ON events (venue_id, id);
DROP INDEX events_venue;
