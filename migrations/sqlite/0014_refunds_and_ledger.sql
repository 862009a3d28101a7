-- Giving money back in parts, the ledger of all that was taken and given back, and what became of returned orders.
-- Amounts are minor units of the currency.

-- What is to be given back of a payment, or has been: the only way by which money goes back, apart from charges of which nobody
-- knows what came, which are undone. Whoever writes a row here holds its order locked, so that the refunds of a payment never
-- exceed it.
CREATE TABLE refunds (
    id INTEGER PRIMARY KEY,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    payment_id BIGINT NOT NULL REFERENCES payments (id),
    amount BIGINT NOT NULL,
    -- The part of the amount that is convenience fees.
    fees BIGINT NOT NULL,
    -- Owed until the gateway has given it back, then Done.
    status TEXT NOT NULL,
    owed BIGINT NOT NULL,
    done BIGINT,
    CONSTRAINT refunds_amount_check CHECK (amount > 0 AND fees >= 0 AND fees <= amount)
);
CREATE INDEX refunds_payment ON refunds (payment_id);
-- What the gateway still has to be asked, which a job looks for again and again.
CREATE INDEX refunds_owed ON refunds (id) WHERE status = 'Owed';

-- The part of a refund that each host bears; a host without a part has no row.
CREATE TABLE refund_shares (
    refund_id BIGINT NOT NULL REFERENCES refunds (id),
    host_id BIGINT NOT NULL REFERENCES hosts (id),
    amount BIGINT NOT NULL,
    fees BIGINT NOT NULL,
    PRIMARY KEY (refund_id, host_id)
);

-- The ledger: rows are added and never changed. Amounts are positive, the type says in which direction the money went.
CREATE TABLE transactions (
    id INTEGER PRIMARY KEY,
    -- Sale or Refund.
    type TEXT NOT NULL,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    payment_id BIGINT NOT NULL REFERENCES payments (id),
    refund_id BIGINT REFERENCES refunds (id),
    amount BIGINT NOT NULL,
    fees BIGINT NOT NULL,
    placed BIGINT NOT NULL,
    CONSTRAINT transactions_amount_check CHECK (amount > 0 AND fees >= 0 AND fees <= amount)
);
CREATE INDEX transactions_order ON transactions (order_id);
CREATE INDEX transactions_placed ON transactions (placed);
-- Whatever the code does, money is entered once.
CREATE UNIQUE INDEX transactions_payment_id_key ON transactions (payment_id) WHERE type = 'Sale';
CREATE UNIQUE INDEX transactions_refund_id_key ON transactions (refund_id);

-- The part of a transaction that is each host's, kept because a host's own list shows no more than that.
CREATE TABLE transaction_shares (
    transaction_id BIGINT NOT NULL REFERENCES transactions (id),
    host_id BIGINT NOT NULL REFERENCES hosts (id),
    amount BIGINT NOT NULL,
    fees BIGINT NOT NULL,
    PRIMARY KEY (transaction_id, host_id)
);
CREATE INDEX transaction_shares_host ON transaction_shares (host_id, transaction_id);

-- Who took tickets of a fulfilled order back, and why.
CREATE TABLE revocations (
    id INTEGER PRIMARY KEY,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    -- Return or Void.
    type TEXT NOT NULL,
    -- How many tickets were made void.
    tickets BIGINT NOT NULL,
    reason TEXT NOT NULL,
    account_id BIGINT REFERENCES accounts (id),
    revoked BIGINT NOT NULL
);
CREATE INDEX revocations_order ON revocations (order_id);

-- The payments that are there. A Sale has its payment's identifier. Of an order's payments those that were kept fill its
-- subtotal first and then its fees, and those that were given back likewise by themselves, as no order has both for its total.
INSERT INTO transactions (id, type, order_id, payment_id, refund_id, amount, fees, placed)
SELECT id, 'Sale', order_id, id, NULL, amount,
    CASE WHEN filled >= subtotal + fees THEN fees WHEN filled > subtotal THEN filled - subtotal ELSE 0 END
        - CASE WHEN filled - amount >= subtotal + fees THEN fees WHEN filled - amount > subtotal THEN filled - amount - subtotal
            ELSE 0 END,
    placed
FROM (
    SELECT p.id, p.order_id, p.amount, p.placed, o.subtotal, o.fees,
        CAST(sum(p.amount) OVER (PARTITION BY p.order_id, p.status = 'Confirmed' ORDER BY p.id) AS BIGINT) AS filled
    FROM payments p JOIN orders o ON o.id = p.order_id
    WHERE p.status IN ('Confirmed', 'Refunding', 'Refunded')
) AS taken;

-- Each host's part: the prices of the order's items side by side, then their fees, and where each payment lies on that line.
INSERT INTO transaction_shares (transaction_id, host_id, amount, fees)
WITH pieces AS (
    SELECT i.order_id, e.host_id, i.position, 0 AS is_fee, i.unit_price * i.quantity AS amount
    FROM order_items i LEFT JOIN events e ON e.id = i.event_id
    UNION ALL
    SELECT i.order_id, e.host_id, i.position, 1 AS is_fee, i.unit_fee * i.quantity AS amount
    FROM order_items i LEFT JOIN events e ON e.id = i.event_id
), line AS (
    SELECT order_id, host_id, is_fee, amount,
        CAST(sum(amount) OVER (PARTITION BY order_id ORDER BY is_fee, position) AS BIGINT) AS reaches
    FROM pieces
), taken AS (
    SELECT p.id, p.order_id, p.amount,
        CAST(sum(p.amount) OVER (PARTITION BY p.order_id, p.status = 'Confirmed' ORDER BY p.id) AS BIGINT) AS reaches
    FROM payments p
    WHERE p.status IN ('Confirmed', 'Refunding', 'Refunded')
), met AS (
    SELECT t.id, l.host_id, l.is_fee,
        CASE WHEN l.reaches < t.reaches THEN l.reaches ELSE t.reaches END
            - CASE WHEN l.reaches - l.amount > t.reaches - t.amount THEN l.reaches - l.amount ELSE t.reaches - t.amount END
            AS amount
    FROM taken t JOIN line l ON l.order_id = t.order_id
    WHERE l.host_id IS NOT NULL
)
SELECT id, host_id, CAST(sum(amount) AS BIGINT), CAST(sum(amount * is_fee) AS BIGINT)
FROM met
WHERE amount > 0
GROUP BY id, host_id;

-- What was given back, or is to be, had been whole payments. When they were given back was not written down: the time of the
-- payment stands for it.
INSERT INTO refunds (id, order_id, payment_id, amount, fees, status, owed, done)
SELECT p.id, p.order_id, p.id, p.amount, t.fees,
    CASE p.status WHEN 'Refunded' THEN 'Done' ELSE 'Owed' END, p.placed, CASE p.status WHEN 'Refunded' THEN p.placed END
FROM payments p JOIN transactions t ON t.payment_id = p.id
WHERE p.status IN ('Refunding', 'Refunded');

INSERT INTO refund_shares (refund_id, host_id, amount, fees)
SELECT r.id, s.host_id, s.amount, s.fees FROM refunds r JOIN transaction_shares s ON s.transaction_id = r.payment_id;

INSERT INTO transactions (id, type, order_id, payment_id, refund_id, amount, fees, placed)
SELECT (SELECT max(id) FROM payments) + row_number() OVER (ORDER BY r.id), 'Refund', r.order_id, r.payment_id, r.id, r.amount,
    r.fees, r.done
FROM refunds r
WHERE r.status = 'Done';

INSERT INTO transaction_shares (transaction_id, host_id, amount, fees)
SELECT t.id, s.host_id, s.amount, s.fees FROM transactions t JOIN refund_shares s ON s.refund_id = t.refund_id;

-- A payment is Confirmed until all of it has been given back.
UPDATE payments SET status = 'Confirmed' WHERE status = 'Refunding';
DROP INDEX payments_unsettled;
CREATE INDEX payments_unsettled ON payments (id) WHERE status IN ('Pending', 'Abandoned');
