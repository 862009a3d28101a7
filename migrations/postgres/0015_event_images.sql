-- Every image of an event is kept under an identifier of its own, so that storing one never touches what a row names already.
-- Those stored before keep the name that they have: their event's identifier.
ALTER TABLE events ADD COLUMN banner_id BIGINT;
ALTER TABLE events ADD COLUMN thumbnail_id BIGINT;
UPDATE events SET banner_id = CASE WHEN banner THEN id END, thumbnail_id = CASE WHEN thumbnail THEN id END;
ALTER TABLE events DROP COLUMN banner;
ALTER TABLE events DROP COLUMN thumbnail;
