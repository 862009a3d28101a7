-- What hosts show to promote their events: advertisements, and the zones that they are booked in.

CREATE TABLE zones (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Pixels.
    width BIGINT NOT NULL,
    height BIGINT NOT NULL,
    -- What advertisement_zones refers to.
    CONSTRAINT zones_id_width_height_key UNIQUE (id, width, height)
);

CREATE TABLE advertisements (
    id INTEGER PRIMARY KEY,
    -- Its host is its event's.
    event_id BIGINT NOT NULL REFERENCES events (id),
    name TEXT NOT NULL CONSTRAINT advertisements_name_key UNIQUE,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    -- The object store keeps each artwork under an identifier of its own, so that one is replaced when this row says so, and
    -- neither before nor after.
    artwork_id BIGINT NOT NULL,
    -- Pixels of the artwork.
    width BIGINT NOT NULL,
    height BIGINT NOT NULL
);
CREATE INDEX advertisements_event ON advertisements (event_id);

CREATE TABLE advertisement_zones (
    advertisement_id BIGINT NOT NULL REFERENCES advertisements (id) ON DELETE CASCADE,
    zone_id BIGINT NOT NULL,
    -- The zone's, which are the artwork's: a zone can neither go nor change its dimensions while something is booked in it,
    -- and nothing is booked in a zone that has other dimensions by then.
    width BIGINT NOT NULL,
    height BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (advertisement_id, zone_id),
    FOREIGN KEY (zone_id, width, height) REFERENCES zones (id, width, height)
);
CREATE INDEX advertisement_zones_zone ON advertisement_zones (zone_id);

CREATE TABLE advertisement_slots (
    advertisement_id BIGINT NOT NULL REFERENCES advertisements (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    starts BIGINT NOT NULL,
    ends BIGINT NOT NULL,
    PRIMARY KEY (advertisement_id, position)
);
