-- Selling: orders, the places they hold while open, what was paid, and the tickets that come of it.
-- Amounts are minor units of the currency.

CREATE TABLE orders (
    id BIGINT PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    status TEXT NOT NULL,
    placed BIGINT NOT NULL,
    -- When an open order's reservation ends. An open order past it counts as timed out even before a job says so.
    expires BIGINT NOT NULL,
    fulfilled BIGINT,
    subtotal BIGINT NOT NULL,
    fees BIGINT NOT NULL
);
CREATE INDEX orders_account ON orders (account_id, id);
CREATE INDEX orders_open ON orders (expires) WHERE status = 'Placed';

CREATE TABLE order_items (
    order_id BIGINT NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    -- Not foreign keys: an order that was cancelled outlives a section or event that is then removed.
    event_id BIGINT NOT NULL,
    section_id BIGINT NOT NULL,
    quantity BIGINT NOT NULL,
    unit_price BIGINT NOT NULL,
    modifier_id BIGINT,
    PRIMARY KEY (order_id, position)
);

-- The places that open orders hold. sections.reserved is their sum; a row goes when its order is settled,
-- cancelled or timed out, in the transaction that says so.
CREATE TABLE reservations (
    order_id BIGINT NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    section_id BIGINT NOT NULL REFERENCES sections (id),
    quantity BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (order_id, section_id)
);
CREATE INDEX reservations_section ON reservations (section_id, expires);

CREATE TABLE payments (
    id BIGINT PRIMARY KEY,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    method TEXT NOT NULL,
    amount BIGINT NOT NULL,
    status TEXT NOT NULL,
    reference TEXT NOT NULL,
    placed BIGINT NOT NULL
);
CREATE INDEX payments_order ON payments (order_id, id);
-- What the gateway still has to be asked, which a job looks for again and again: beside the states of the API there are a
-- charge under way, a charge of which nobody knows what came, and money owed back.
CREATE INDEX payments_unsettled ON payments (id) WHERE status IN ('Pending', 'Abandoned', 'Refunding');

CREATE TABLE tickets (
    id BIGINT PRIMARY KEY,
    serial TEXT NOT NULL CONSTRAINT tickets_serial_key UNIQUE,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    event_id BIGINT NOT NULL REFERENCES events (id),
    section_id BIGINT NOT NULL REFERENCES sections (id),
    owner_id BIGINT NOT NULL REFERENCES accounts (id),
    status TEXT NOT NULL,
    issued BIGINT NOT NULL,
    redeemed BIGINT,
    modified BIGINT NOT NULL
);
CREATE INDEX tickets_owner ON tickets (owner_id, id);
CREATE INDEX tickets_event ON tickets (event_id, id);
CREATE INDEX tickets_order ON tickets (order_id);
CREATE INDEX tickets_section ON tickets (section_id);
