-- Reference data: where events take place, and how they are classified.

CREATE TABLE regions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CONSTRAINT regions_name_key UNIQUE,
    country TEXT NOT NULL,
    district TEXT NOT NULL,
    city TEXT NOT NULL
);

CREATE TABLE venues (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CONSTRAINT venues_name_key UNIQUE,
    region_id BIGINT NOT NULL REFERENCES regions (id),
    address TEXT NOT NULL,
    longitude DOUBLE PRECISION NOT NULL,
    latitude DOUBLE PRECISION NOT NULL,
    -- A customer's venue waits for review; until then only its creator's events may use it.
    approved BOOLEAN NOT NULL,
    creator_id BIGINT REFERENCES accounts (id)
);
CREATE INDEX venues_region ON venues (region_id);

CREATE TABLE categories (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CONSTRAINT categories_name_key UNIQUE
);

CREATE TABLE subcategories (
    category_id BIGINT NOT NULL REFERENCES categories (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (category_id, name)
);
