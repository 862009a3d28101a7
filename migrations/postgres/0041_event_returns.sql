-- Returns of all orders of a cancelled event. A job returns one order after the other, so that a run can be interrupted at any
-- time and continued by any server.
CREATE TABLE event_returns (
    id BIGINT PRIMARY KEY,
    event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    -- Running or Done.
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- The account of the caller, if its key acts for one.
    account_id BIGINT REFERENCES accounts (id),
    -- The last order that was processed; 0 at first. Orders are processed by ascending identifier.
    last_order BIGINT NOT NULL,
    -- What was returned so far: orders, tickets, and the amount with fees in minor units.
    orders BIGINT NOT NULL,
    tickets BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    started BIGINT NOT NULL,
    finished BIGINT
);
CREATE INDEX event_returns_event ON event_returns (event_id, id);
CREATE INDEX event_returns_account ON event_returns (account_id);
-- An event has one run at a time.
CREATE UNIQUE INDEX event_returns_running_key ON event_returns (event_id) WHERE status = 'Running';
