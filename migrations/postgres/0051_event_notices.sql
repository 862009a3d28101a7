-- Changes of events that are to be reported to the holders of tickets, by mail and in batches: a request reports none itself. The
-- row has the start and the venue that the holders know. It is removed when all of them have got their mail.
CREATE TABLE event_notices (
    event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    -- Changed or Cancelled.
    kind TEXT NOT NULL,
    starts BIGINT NOT NULL,
    venue TEXT NOT NULL,
    -- Changes until then are reported together.
    due BIGINT NOT NULL,
    -- The holders of tickets up to this one have got their mail.
    last_ticket_id BIGINT NOT NULL,
    PRIMARY KEY (event_id, kind)
);
CREATE INDEX event_notices_due ON event_notices (due);
