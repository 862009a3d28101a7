-- The hosts of removed events that had orders. The hosts still see these orders as before: their items, payments and returns.
CREATE TABLE removed_events (
    id INTEGER PRIMARY KEY,
    host_id BIGINT NOT NULL
);

CREATE TRIGGER removed_events_of_events AFTER DELETE ON events
WHEN EXISTS (SELECT 1 FROM order_items i WHERE i.event_id = old.id)
BEGIN
    INSERT INTO removed_events (id, host_id) VALUES (old.id, old.host_id) ON CONFLICT (id) DO NOTHING;
END;

-- The orders stay in the lists of their hosts.
DROP TRIGGER host_orders_of_removed_events;
DROP TRIGGER host_orders_of_removed_order_items;
CREATE TRIGGER host_orders_of_removed_order_items AFTER DELETE ON order_items
BEGIN
    UPDATE host_orders SET items = items - 1 WHERE order_id = old.order_id AND host_id = coalesce(
        (SELECT e.host_id FROM events e WHERE e.id = old.event_id), (SELECT r.host_id FROM removed_events r WHERE r.id = old.event_id));
    INSERT INTO list_counts (list, owner, part, count) SELECT 'host orders', h.host_id, 0, -1
    FROM host_orders h WHERE h.order_id = old.order_id AND h.items = 0 AND h.host_id = coalesce(
        (SELECT e.host_id FROM events e WHERE e.id = old.event_id), (SELECT r.host_id FROM removed_events r WHERE r.id = old.event_id))
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
    DELETE FROM host_orders WHERE order_id = old.order_id AND items = 0 AND host_id = coalesce(
        (SELECT e.host_id FROM events e WHERE e.id = old.event_id), (SELECT r.host_id FROM removed_events r WHERE r.id = old.event_id));
END;
