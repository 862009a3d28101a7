-- The published events in the order in which they were changed last. A server that keeps the words of published events in memory reads
-- only those that have changed since. A change has the same position for all rows of a transaction on PostgreSQL, and positions are in
-- the order of the commits. An event that was withdrawn or removed stays here, so that servers forget it.
ALTER TABLE event_changes ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
CREATE TRIGGER event_changes_position AFTER UPDATE OF count ON event_changes
BEGIN
    UPDATE event_changes SET position = position + 1;
END;

CREATE TABLE published_event_changes (event_id INTEGER PRIMARY KEY, position BIGINT NOT NULL);
CREATE INDEX published_event_changes_position ON published_event_changes (position, event_id);
INSERT INTO published_event_changes (event_id, position) SELECT id, 0 FROM events WHERE status = 'Listed';

CREATE TRIGGER published_event_changes_of_new_events AFTER INSERT ON events WHEN new.status = 'Listed'
BEGIN
    UPDATE event_changes SET count = count + 1;
    INSERT INTO published_event_changes (event_id, position) SELECT new.id, position FROM event_changes WHERE true
    ON CONFLICT (event_id) DO UPDATE SET position = excluded.position;
END;
CREATE TRIGGER published_event_changes_of_events AFTER UPDATE OF status, public, starts, ends ON events
WHEN (old.status = 'Listed' OR new.status = 'Listed')
    AND (old.status <> new.status OR old.public <> new.public OR old.starts <> new.starts OR old.ends <> new.ends)
BEGIN
    UPDATE event_changes SET count = count + 1;
    INSERT INTO published_event_changes (event_id, position) SELECT new.id, position FROM event_changes WHERE true
    ON CONFLICT (event_id) DO UPDATE SET position = excluded.position;
END;
CREATE TRIGGER published_event_changes_of_removed_events AFTER DELETE ON events WHEN old.status = 'Listed'
BEGIN
    UPDATE event_changes SET count = count + 1;
    INSERT INTO published_event_changes (event_id, position) SELECT old.id, position FROM event_changes WHERE true
    ON CONFLICT (event_id) DO UPDATE SET position = excluded.position;
END;
CREATE TRIGGER published_event_changes_of_new_words AFTER INSERT ON event_words
WHEN (SELECT e.status FROM events e WHERE e.id = new.event_id) = 'Listed'
BEGIN
    UPDATE event_changes SET count = count + 1;
    INSERT INTO published_event_changes (event_id, position) SELECT new.event_id, position FROM event_changes WHERE true
    ON CONFLICT (event_id) DO UPDATE SET position = excluded.position;
END;
CREATE TRIGGER published_event_changes_of_words AFTER UPDATE ON event_words
WHEN (old.title_words <> new.title_words OR old.keywords <> new.keywords OR old.words <> new.words)
    AND (SELECT e.status FROM events e WHERE e.id = new.event_id) = 'Listed'
BEGIN
    UPDATE event_changes SET count = count + 1;
    INSERT INTO published_event_changes (event_id, position) SELECT new.event_id, position FROM event_changes WHERE true
    ON CONFLICT (event_id) DO UPDATE SET position = excluded.position;
END;
