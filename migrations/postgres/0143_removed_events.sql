-- The hosts of removed events that had orders. The hosts still see these orders as before: their items, payments and returns.
CREATE TABLE removed_events (
    id BIGINT PRIMARY KEY,
    host_id BIGINT NOT NULL
);

CREATE FUNCTION keep_hosts_of_removed_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO removed_events (id, host_id)
    SELECT c.id, c.host_id FROM changed c WHERE EXISTS (SELECT 1 FROM order_items i WHERE i.event_id = c.id)
    ON CONFLICT (id) DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER removed_events_of_events AFTER DELETE ON events
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keep_hosts_of_removed_events();

-- The orders stay in the lists of their hosts.
DROP TRIGGER host_orders_of_removed_events ON events;
DROP FUNCTION remove_orders_of_events();
CREATE OR REPLACE FUNCTION remove_orders_of_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM remove_host_orders(array_agg(host_id), array_agg(order_id), array_agg(items)) FROM (
        SELECT coalesce(e.host_id, r.host_id) AS host_id, c.order_id, count(*) AS items FROM changed c
        LEFT JOIN events e ON e.id = c.event_id LEFT JOIN removed_events r ON r.id = c.event_id
        WHERE coalesce(e.host_id, r.host_id) IS NOT NULL GROUP BY coalesce(e.host_id, r.host_id), c.order_id
    ) AS removed;
    RETURN NULL;
END
$$;
