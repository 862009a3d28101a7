-- How often hosts and staff have changed anything that events and the list of those published show. A server remembers it for as
-- long as this stays the same, whichever server or program makes the change. What buyers change (places sold and reserved,
-- popularity) doesn't count; nor do new and removed sections, which whoever reads those places sees.
CREATE TABLE event_changes (count BIGINT NOT NULL);
INSERT INTO event_changes (count) VALUES (0);

CREATE TRIGGER event_changes_of_events
AFTER UPDATE OF host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends, disclaimer,
    tags, banner_id, thumbnail_id, published ON events
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_new_events AFTER INSERT ON events WHEN new.status = 'Listed'
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_removed_events AFTER DELETE ON events WHEN old.status = 'Listed'
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_sections
AFTER UPDATE OF event_id, name, description, base_price, capacity, sales_start, sales_end, active ON sections
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_new_modifiers AFTER INSERT ON modifiers
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_modifiers AFTER UPDATE ON modifiers
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_removed_modifiers AFTER DELETE ON modifiers
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_venues AFTER UPDATE ON venues
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_categories AFTER UPDATE ON categories
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_new_subcategories AFTER INSERT ON subcategories
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_subcategories AFTER UPDATE ON subcategories
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
CREATE TRIGGER event_changes_of_removed_subcategories AFTER DELETE ON subcategories
BEGIN
    UPDATE event_changes SET count = count + 1;
END;
