-- What everyone lists: it is counted, and found in the order of making, by this index alone.
CREATE INDEX events_published ON events (status, public, id);
