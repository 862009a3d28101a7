-- What everyone lists, in the order of making; it is counted and found by its index alone.
CREATE INDEX events_published ON events (id) WHERE status = 'Listed' AND public = true;
