-- What hosts publish: events, their sections, and the submissions by which they are reviewed.

CREATE TABLE hosts (
    id BIGINT PRIMARY KEY,
    name TEXT NOT NULL CONSTRAINT hosts_name_key UNIQUE,
    contact TEXT NOT NULL,
    email TEXT NOT NULL,
    description TEXT NOT NULL,
    phone TEXT NOT NULL,
    website TEXT NOT NULL,
    country TEXT NOT NULL,
    first_address_line TEXT NOT NULL,
    second_address_line TEXT NOT NULL,
    city TEXT NOT NULL,
    state TEXT NOT NULL,
    business_no TEXT NOT NULL,
    -- A removed host's events stay and its tickets remain valid, so the row stays too.
    removed BOOLEAN NOT NULL
);

CREATE TABLE host_administrators (
    host_id BIGINT NOT NULL REFERENCES hosts (id),
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    PRIMARY KEY (host_id, account_id)
);
CREATE INDEX host_administrators_account ON host_administrators (account_id);

CREATE TABLE events (
    id BIGINT PRIMARY KEY,
    host_id BIGINT NOT NULL REFERENCES hosts (id),
    title TEXT NOT NULL CONSTRAINT events_title_key UNIQUE,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    type TEXT NOT NULL,
    public BOOLEAN NOT NULL,
    category_id BIGINT NOT NULL,
    subcategory TEXT NOT NULL,
    venue_id BIGINT NOT NULL REFERENCES venues (id),
    starts BIGINT NOT NULL,
    ends BIGINT NOT NULL,
    disclaimer TEXT NOT NULL,
    -- A JSON array of strings.
    tags TEXT NOT NULL,
    -- Whether the object store holds the image.
    banner BOOLEAN NOT NULL,
    thumbnail BOOLEAN NOT NULL,
    published BIGINT,
    -- Tickets sold and not given back, kept here so that lists can be sorted by it.
    popularity BIGINT NOT NULL,
    -- A category's subcategory cannot go while an event uses it.
    FOREIGN KEY (category_id, subcategory) REFERENCES subcategories (category_id, name)
);
CREATE INDEX events_host ON events (host_id);
CREATE INDEX events_venue ON events (venue_id);
CREATE INDEX events_category ON events (category_id, subcategory);
CREATE INDEX events_status ON events (status, ends);

CREATE TABLE sections (
    id BIGINT PRIMARY KEY,
    event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Minor units of the currency.
    base_price BIGINT NOT NULL,
    capacity BIGINT NOT NULL,
    sold BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    sales_start BIGINT NOT NULL,
    sales_end BIGINT NOT NULL,
    active BOOLEAN NOT NULL,
    CONSTRAINT sections_event_id_name_key UNIQUE (event_id, name),
    -- The last word on overselling, whatever the code does.
    CONSTRAINT sections_capacity_check CHECK (sold >= 0 AND reserved >= 0 AND sold + reserved <= capacity)
);

CREATE TABLE submissions (
    id BIGINT PRIMARY KEY,
    -- event, advertisement or venue, and that content's identifier.
    type TEXT NOT NULL,
    content_id BIGINT NOT NULL,
    status TEXT NOT NULL,
    submitted BIGINT NOT NULL,
    submitter_id BIGINT REFERENCES accounts (id),
    reason TEXT NOT NULL
);
-- A content's URI names its latest submission; at most one of them is pending.
CREATE INDEX submissions_content ON submissions (type, content_id, id);
CREATE UNIQUE INDEX submissions_type_content_id_key ON submissions (type, content_id) WHERE status = 'Pending';
