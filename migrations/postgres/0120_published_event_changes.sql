-- The published events in the order in which they were changed last. A server that keeps the words of published events in memory reads
-- only those that have changed since. A change has the same position for all rows of a transaction on PostgreSQL, and positions are in
-- the order of the commits. An event that was withdrawn or removed stays here, so that servers forget it.
ALTER TABLE event_changes ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
CREATE FUNCTION advance_event_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.position := OLD.position + 1;
    RETURN NEW;
END
$$;
CREATE TRIGGER event_changes_position BEFORE UPDATE ON event_changes
    FOR EACH ROW EXECUTE FUNCTION advance_event_changes();

CREATE TABLE published_event_changes (event_id BIGINT PRIMARY KEY, position BIGINT NOT NULL);
CREATE INDEX published_event_changes_position ON published_event_changes (position, event_id);
INSERT INTO published_event_changes (event_id, position) SELECT id, 0 FROM events WHERE status = 'Listed';

-- The transaction holds the row of `event_changes` from its first change until its commit. So whoever sees a position also sees all
-- changes with lower ones.
CREATE FUNCTION record_published_event(changed BIGINT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE event_changes SET count = (random() * 9e18)::bigint WHERE xmin <> pg_current_xact_id()::xid;
    INSERT INTO published_event_changes AS c (event_id, position) SELECT changed, position FROM event_changes
    ON CONFLICT (event_id) DO UPDATE SET position = excluded.position WHERE c.position <> excluded.position;
END
$$;
CREATE FUNCTION record_changed_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_published_event(CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
    RETURN NULL;
END
$$;
CREATE FUNCTION record_changed_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_published_event(e.id) FROM events e WHERE e.id = NEW.event_id AND e.status = 'Listed';
    RETURN NULL;
END
$$;
-- Deferred until the commit, like those that count the changes (0023).
CREATE CONSTRAINT TRIGGER published_event_changes_of_new_events AFTER INSERT ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'Listed') EXECUTE FUNCTION record_changed_event();
CREATE CONSTRAINT TRIGGER published_event_changes_of_events AFTER UPDATE OF status, public, starts, ends ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.status = 'Listed' OR NEW.status = 'Listed')
        AND (OLD.status, OLD.public, OLD.starts, OLD.ends) IS DISTINCT FROM (NEW.status, NEW.public, NEW.starts, NEW.ends))
    EXECUTE FUNCTION record_changed_event();
CREATE CONSTRAINT TRIGGER published_event_changes_of_removed_events AFTER DELETE ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.status = 'Listed') EXECUTE FUNCTION record_changed_event();
CREATE CONSTRAINT TRIGGER published_event_changes_of_new_words AFTER INSERT ON event_words
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION record_changed_words();
CREATE CONSTRAINT TRIGGER published_event_changes_of_words AFTER UPDATE ON event_words
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION record_changed_words();
