-- The size of an event determines which events are on a page, so a cached page also depends on new and removed sections.
CREATE CONSTRAINT TRIGGER event_changes_of_new_and_removed_sections AFTER INSERT OR DELETE ON sections
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_event_change();
