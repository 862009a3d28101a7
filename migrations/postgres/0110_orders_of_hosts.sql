-- The orders of each host. Its list of orders is read here, in their order, because an index of the items of its events has them
-- event by event. Triggers keep the rows in the transaction that changes the items, also for servers of the version before.
CREATE TABLE host_orders (
    host_id BIGINT NOT NULL,
    order_id BIGINT NOT NULL,
    -- The number of the order's items for events of the host. The row goes with the last one, or with the last event.
    items BIGINT NOT NULL,
    PRIMARY KEY (host_id, order_id)
);

-- The triggers below run once per statement. Each has the inserted or deleted rows in the table `changed`.
CREATE FUNCTION count_host_orders() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg('host orders'::text), array_agg(host_id), array_agg(TG_ARGV[0]::bigint)) FROM changed;
    RETURN NULL;
END
$$;

CREATE FUNCTION add_host_orders() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO host_orders AS o (host_id, order_id, items)
    SELECT e.host_id, c.order_id, count(*) FROM changed c JOIN events e ON e.id = c.event_id GROUP BY e.host_id, c.order_id
    ON CONFLICT (host_id, order_id) DO UPDATE SET items = o.items + excluded.items;
    RETURN NULL;
END
$$;
CREATE TRIGGER host_orders_of_new_order_items AFTER INSERT ON order_items
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION add_host_orders();

-- The number can be less than 0 if the order and an event are removed at the same time.
CREATE FUNCTION remove_host_orders(hosts BIGINT[], orders BIGINT[], removed BIGINT[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM host_orders o WHERE (o.host_id, o.order_id) IN (SELECT * FROM unnest(hosts, orders))
    ORDER BY o.host_id, o.order_id FOR UPDATE;
    UPDATE host_orders o SET items = o.items - r.items FROM unnest(hosts, orders, removed) AS r (host_id, order_id, items)
    WHERE o.host_id = r.host_id AND o.order_id = r.order_id;
    DELETE FROM host_orders o WHERE (o.host_id, o.order_id) IN (SELECT * FROM unnest(hosts, orders)) AND o.items <= 0;
END
$$;
CREATE FUNCTION remove_orders_of_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM remove_host_orders(array_agg(host_id), array_agg(order_id), array_agg(items)) FROM (
        SELECT e.host_id, c.order_id, count(*) AS items FROM changed c JOIN events e ON e.id = c.event_id
        GROUP BY e.host_id, c.order_id
    ) AS removed;
    RETURN NULL;
END
$$;
CREATE TRIGGER host_orders_of_removed_order_items AFTER DELETE ON order_items
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION remove_orders_of_items();
-- Orders that were not paid stay when their event is removed.
CREATE FUNCTION remove_orders_of_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM remove_host_orders(array_agg(host_id), array_agg(order_id), array_agg(items)) FROM (
        SELECT c.host_id, i.order_id, count(*) AS items FROM changed c JOIN order_items i ON i.event_id = c.id
        GROUP BY c.host_id, i.order_id
    ) AS removed;
    RETURN NULL;
END
$$;
CREATE TRIGGER host_orders_of_removed_events AFTER DELETE ON events
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION remove_orders_of_events();

-- The triggers have locked the tables, so that no other transaction changes rows until the orders are inserted.
INSERT INTO host_orders (host_id, order_id, items)
SELECT e.host_id, i.order_id, count(*) FROM order_items i JOIN events e ON e.id = i.event_id GROUP BY e.host_id, i.order_id;
INSERT INTO list_counts (list, owner, part, count) SELECT 'host orders', host_id, 0, count(*) FROM host_orders GROUP BY host_id;
CREATE TRIGGER list_counts_of_new_host_orders AFTER INSERT ON host_orders
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_host_orders('1');
CREATE TRIGGER list_counts_of_removed_host_orders AFTER DELETE ON host_orders
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_host_orders('-1');

-- The events for which an account has tickets are few among its tickets.
CREATE INDEX IF NOT EXISTS tickets_owner_event ON tickets (owner_id, event_id);
