-- How often hosts and staff have changed anything that events and the list of those published show. A server remembers it for as
-- long as this stays the same, whichever server or program makes the change. What buyers change (places sold and reserved,
-- popularity) doesn't count; nor do new and removed sections, which whoever reads those places sees.
CREATE TABLE event_changes (count BIGINT NOT NULL);
INSERT INTO event_changes (count) VALUES (0);

-- One count for a transaction, however many rows it changes.
CREATE FUNCTION count_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE event_changes SET count = count + 1 WHERE xmin <> pg_current_xact_id()::xid;
    RETURN NULL;
END
$$;
-- Deferred until the commit: nobody waits for the one row for longer than a commit takes, nor in a circle.
CREATE CONSTRAINT TRIGGER event_changes_of_events
    AFTER UPDATE OF host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends, disclaimer,
        tags, banner_id, thumbnail_id, published ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_new_events AFTER INSERT ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'Listed') EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_removed_events AFTER DELETE ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.status = 'Listed') EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_sections
    AFTER UPDATE OF event_id, name, description, base_price, capacity, sales_start, sales_end, active ON sections
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_modifiers AFTER INSERT OR UPDATE OR DELETE ON modifiers
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_venues AFTER UPDATE ON venues
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_categories AFTER UPDATE ON categories
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_event_change();
CREATE CONSTRAINT TRIGGER event_changes_of_subcategories AFTER INSERT OR UPDATE OR DELETE ON subcategories
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_event_change();
