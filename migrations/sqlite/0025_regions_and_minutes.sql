-- An event shows the region of its venue, so a change of a region is a change of events' representation.
CREATE TRIGGER event_changes_of_regions AFTER UPDATE OF name, country, district, city ON regions
BEGIN
    UPDATE event_changes SET count = count + 1;
END;

-- A key's caller has the preferred region of the account, whose events the caller's list of published events begins with.
CREATE TRIGGER key_changes_of_new_preferences AFTER INSERT ON account_preferences
BEGIN
    UPDATE key_changes SET count = count + 1;
END;
CREATE TRIGGER key_changes_of_preferences AFTER UPDATE OF region_id ON account_preferences
WHEN old.region_id IS NOT new.region_id
BEGIN
    UPDATE key_changes SET count = count + 1;
END;
CREATE TRIGGER key_changes_of_removed_preferences AFTER DELETE ON account_preferences
BEGIN
    UPDATE key_changes SET count = count + 1;
END;

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
