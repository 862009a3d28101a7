-- The orders of each host. Its list of orders is read here, in their order, because an index of the items of its events has them
-- event by event. Triggers keep the rows in the transaction that changes the items, also for servers of the version before.
CREATE TABLE host_orders (
    host_id BIGINT NOT NULL,
    order_id BIGINT NOT NULL,
    -- The number of the order's items for events of the host. The row goes with the last one, or with the last event.
    items BIGINT NOT NULL,
    PRIMARY KEY (host_id, order_id)
) WITHOUT ROWID;

-- The total of the list is changed here, and values are inserted rather than selected rows: triggers of this table, or a `select`, would
-- take twice as long for each order.
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
-- Orders that were not paid stay when their event is removed.
CREATE TRIGGER host_orders_of_removed_events AFTER DELETE ON events
BEGIN
    UPDATE host_orders
    SET items = items - (SELECT count(*) FROM order_items i WHERE i.event_id = old.id AND i.order_id = host_orders.order_id)
    WHERE host_id = old.host_id AND order_id IN (SELECT i.order_id FROM order_items i WHERE i.event_id = old.id);
    INSERT INTO list_counts (list, owner, part, count) SELECT 'host orders', h.host_id, 0, -1 FROM host_orders h
    WHERE h.host_id = old.host_id AND h.order_id IN (SELECT i.order_id FROM order_items i WHERE i.event_id = old.id) AND h.items = 0
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
    DELETE FROM host_orders
    WHERE host_id = old.host_id AND order_id IN (SELECT i.order_id FROM order_items i WHERE i.event_id = old.id) AND items = 0;
END;

INSERT INTO host_orders (host_id, order_id, items)
SELECT e.host_id, i.order_id, count(*) FROM order_items i JOIN events e ON e.id = i.event_id GROUP BY e.host_id, i.order_id;
INSERT INTO list_counts (list, owner, part, count) SELECT 'host orders', host_id, 0, count(*) FROM host_orders GROUP BY host_id;

-- The events for which an account has tickets are few among its tickets.
CREATE INDEX IF NOT EXISTS tickets_owner_event ON tickets (owner_id, event_id);
