-- The size of an event determines which events are on a page, so a cached page also depends on new and removed sections.
CREATE TRIGGER event_changes_of_new_sections AFTER INSERT ON sections
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_removed_sections AFTER DELETE ON sections
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
