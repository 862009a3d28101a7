-- The largest number of tickets of a section that one account may buy. Null for any number.
ALTER TABLE sections ADD COLUMN maximum_per_account BIGINT;

-- Events show it, so a change counts like those of the other columns (0023).
CREATE CONSTRAINT TRIGGER event_changes_of_section_limits AFTER UPDATE OF maximum_per_account ON sections
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.maximum_per_account IS DISTINCT FROM NEW.maximum_per_account) EXECUTE FUNCTION count_event_change();
