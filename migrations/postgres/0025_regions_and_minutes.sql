-- An event shows the region of its venue, so a change of a region is a change of events' representation.
CREATE CONSTRAINT TRIGGER event_changes_of_regions AFTER UPDATE OF name, country, district, city ON regions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_event_change();

-- A key's caller has the preferred region of the account, whose events the caller's list of published events begins with.
CREATE CONSTRAINT TRIGGER key_changes_of_preferences AFTER INSERT OR DELETE ON account_preferences
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_key_change();
CREATE CONSTRAINT TRIGGER key_changes_of_changed_preferences AFTER UPDATE OF region_id ON account_preferences
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.region_id IS DISTINCT FROM NEW.region_id) EXECUTE FUNCTION count_key_change();

-- Times that are shown with minutes are kept to the minute, so that a client can send back what it has read without changing it. An
-- event, a sale or a slot still ends after it starts.
UPDATE events SET starts = starts - (starts % 60000000 + 60000000) % 60000000, ends = ends - (ends % 60000000 + 60000000) % 60000000
WHERE starts % 60000000 <> 0 OR ends % 60000000 <> 0;
UPDATE events SET ends = ends + 60000000 WHERE ends = starts;
UPDATE sections SET sales_start = sales_start - (sales_start % 60000000 + 60000000) % 60000000, sales_end = sales_end - (sales_end % 60000000 + 60000000) % 60000000
WHERE sales_start % 60000000 <> 0 OR sales_end % 60000000 <> 0;
UPDATE sections SET sales_end = sales_end + 60000000 WHERE sales_end = sales_start;
UPDATE modifiers SET available_from = available_from - (available_from % 60000000 + 60000000) % 60000000, available_to = available_to - (available_to % 60000000 + 60000000) % 60000000
WHERE available_from % 60000000 <> 0 OR available_to % 60000000 <> 0;
UPDATE modifiers SET available_to = available_to + 60000000 WHERE available_to = available_from;
UPDATE advertisement_slots SET starts = starts - (starts % 60000000 + 60000000) % 60000000, ends = ends - (ends % 60000000 + 60000000) % 60000000
WHERE starts % 60000000 <> 0 OR ends % 60000000 <> 0;
UPDATE advertisement_slots SET ends = ends + 60000000 WHERE ends = starts;
