-- The rows of these tables are short and are found by their primary keys. Without a rowid, the table is the index of its primary key,
-- so that an order and its payment write fewer pages.

-- Otherwise, SQLite would reject the new names, because triggers and views name the tables.
PRAGMA legacy_alter_table = ON;

CREATE TABLE order_items_new (
    order_id BIGINT NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    -- Not foreign keys: an order that was cancelled outlives a section or event that is then removed.
    event_id BIGINT NOT NULL,
    section_id BIGINT NOT NULL,
    quantity BIGINT NOT NULL,
    unit_price BIGINT NOT NULL,
    unit_fee BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (order_id, position)
) WITHOUT ROWID;
INSERT INTO order_items_new (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)
SELECT order_id, position, event_id, section_id, quantity, unit_price, unit_fee FROM order_items ORDER BY order_id, position;
DROP TABLE order_items;
ALTER TABLE order_items_new RENAME TO order_items;
CREATE INDEX order_items_event ON order_items (event_id, order_id);

CREATE TABLE reservations_new (
    order_id BIGINT NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    section_id BIGINT NOT NULL REFERENCES sections (id),
    quantity BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (order_id, section_id)
) WITHOUT ROWID;
INSERT INTO reservations_new (order_id, section_id, quantity, expires)
SELECT order_id, section_id, quantity, expires FROM reservations ORDER BY order_id, section_id;
DROP TABLE reservations;
ALTER TABLE reservations_new RENAME TO reservations;
CREATE INDEX reservations_section ON reservations (section_id, expires);

CREATE TABLE transaction_shares_new (
    transaction_id BIGINT NOT NULL REFERENCES transactions (id),
    host_id BIGINT NOT NULL REFERENCES hosts (id),
    amount BIGINT NOT NULL,
    fees BIGINT NOT NULL,
    PRIMARY KEY (transaction_id, host_id)
) WITHOUT ROWID;
INSERT INTO transaction_shares_new (transaction_id, host_id, amount, fees)
SELECT transaction_id, host_id, amount, fees FROM transaction_shares ORDER BY transaction_id, host_id;
DROP TABLE transaction_shares;
ALTER TABLE transaction_shares_new RENAME TO transaction_shares;
CREATE INDEX transaction_shares_host ON transaction_shares (host_id, transaction_id);

PRAGMA legacy_alter_table = OFF;

CREATE TRIGGER list_counts_of_new_order_items AFTER INSERT ON order_items
WHEN NOT EXISTS (SELECT 1 FROM order_items i
    WHERE i.order_id = new.order_id AND i.position <> new.position AND i.event_id = new.event_id)
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('event orders', new.event_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_removed_order_items AFTER DELETE ON order_items
WHEN NOT EXISTS (SELECT 1 FROM order_items i WHERE i.order_id = old.order_id AND i.event_id = old.event_id)
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('event orders', old.event_id, 0, -1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
END;
CREATE TRIGGER host_orders_of_new_order_items AFTER INSERT ON order_items
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES (
        'host orders', (SELECT e.host_id FROM events e WHERE e.id = new.event_id), 0,
        NOT EXISTS (SELECT 1 FROM host_orders h
            WHERE h.host_id = (SELECT e.host_id FROM events e WHERE e.id = new.event_id) AND h.order_id = new.order_id)
    ) ON CONFLICT (list, owner, part) DO UPDATE SET count = count + excluded.count;
    INSERT INTO host_orders (host_id, order_id, items)
    VALUES ((SELECT e.host_id FROM events e WHERE e.id = new.event_id), new.order_id, 1)
    ON CONFLICT (host_id, order_id) DO UPDATE SET items = items + 1;
END;
CREATE TRIGGER host_orders_of_removed_order_items AFTER DELETE ON order_items
BEGIN
    UPDATE host_orders SET items = items - 1
    WHERE order_id = old.order_id AND host_id = (SELECT e.host_id FROM events e WHERE e.id = old.event_id);
    INSERT INTO list_counts (list, owner, part, count) SELECT 'host orders', h.host_id, 0, -1
    FROM events e JOIN host_orders h ON h.host_id = e.host_id WHERE e.id = old.event_id AND h.order_id = old.order_id AND h.items = 0
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
    DELETE FROM host_orders
    WHERE order_id = old.order_id AND host_id = (SELECT e.host_id FROM events e WHERE e.id = old.event_id) AND items = 0;
END;
CREATE TRIGGER list_counts_of_new_transaction_shares AFTER INSERT ON transaction_shares
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('host transactions', new.host_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
