-- Each transaction adds to parts of the numbers of lists (0100) and of the sums of sales (0111) to which no other transaction adds at the
-- same time, so that none waits for another one. Two connections could share a part, and their transactions could deadlock: each
-- locked the rows in the order of its statements.

-- Returns the number of a part that only this transaction uses until it ends: usually that of its connection, otherwise the next one
-- that is free.
CREATE FUNCTION lock_free_part() RETURNS INT LANGUAGE plpgsql AS $$
DECLARE
    part INT := pg_backend_pid() % 16;
BEGIN
    WHILE NOT pg_try_advisory_xact_lock(hashtext('parts of sums'), part) LOOP
        part := part + 1;
    END LOOP;
    RETURN part;
END
$$;

CREATE OR REPLACE FUNCTION add_to_list_counts(lists TEXT[], owners BIGINT[], counts BIGINT[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    free_part INT := lock_free_part();
BEGIN
    INSERT INTO list_counts AS c (list, owner, part, count)
    SELECT t.list, t.owner, free_part, sum(t.count) FROM unnest(lists, owners, counts) AS t (list, owner, count)
    GROUP BY t.list, t.owner HAVING sum(t.count) <> 0
    ON CONFLICT (list, owner, part) DO UPDATE SET count = c.count + excluded.count;
END
$$;

-- As in 0111, except for the parts.
CREATE OR REPLACE FUNCTION add_to_sales(changed_orders BIGINT[], changed_sections BIGINT[], changes BIGINT[])
RETURNS void LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    free_part INT := lock_free_part();
BEGIN
    WITH items AS MATERIALIZED (
        SELECT o.id AS order_id, o.account_id, o.fulfilled / 86400000000 AS day, i.event_id, i.section_id, e.host_id,
            c.change, c.change * i.unit_price AS sales, c.change * i.unit_fee AS fees
        FROM unnest(changed_orders, changed_sections, changes) AS c (order_id, section_id, change)
        JOIN orders o ON o.id = c.order_id JOIN order_items i ON i.order_id = o.id AND i.section_id = c.section_id
        JOIN events e ON e.id = i.event_id
    ), sold AS MATERIALIZED (
        -- Without the sign, a connection that has planned the statement for an empty table would read all tickets of the event.
        SELECT t.order_id, t.event_id, e.host_id, count(*) AS tickets
        FROM tickets t JOIN orders o ON o.id = t.order_id AND o.status = 'Fulfilled' JOIN events e ON e.id = +t.event_id
        WHERE t.order_id = ANY (changed_orders) AND t.status <> 'Void' GROUP BY t.order_id, t.event_id, e.host_id
    ), of_events AS (
        INSERT INTO event_sales AS s (event_id, day, section_id, part, orders, tickets, sales, fees)
        SELECT event_id, day, section_id, free_part, sum(orders), sum(tickets), sum(sales), sum(fees) FROM (
            SELECT event_id, day, section_id, 0 AS orders, change AS tickets, sales, fees FROM items
            UNION ALL
            SELECT c.event_id, c.day, 0, (coalesce(s.tickets, 0) > 0)::int - (coalesce(s.tickets, 0) > c.change)::int, 0, 0, 0
            FROM (SELECT order_id, event_id, day, sum(change) AS change FROM items GROUP BY order_id, event_id, day) AS c
            LEFT JOIN sold s USING (order_id, event_id)
        ) AS sums GROUP BY event_id, day, section_id HAVING sum(orders) <> 0 OR sum(tickets) <> 0
        ORDER BY event_id, day, section_id
        ON CONFLICT (event_id, day, section_id, part) DO UPDATE SET orders = s.orders + excluded.orders,
            tickets = s.tickets + excluded.tickets, sales = s.sales + excluded.sales, fees = s.fees + excluded.fees
    ), orders_of_customers AS MATERIALIZED (
        SELECT c.host_id, c.account_id, sum((coalesce(s.tickets, 0) > 0)::int - (coalesce(s.tickets, 0) > c.change)::int) AS orders
        FROM (SELECT order_id, host_id, account_id, sum(change) AS change FROM items GROUP BY order_id, host_id, account_id) AS c
        LEFT JOIN (SELECT order_id, host_id, sum(tickets) AS tickets FROM sold GROUP BY order_id, host_id) AS s
            USING (order_id, host_id)
        GROUP BY c.host_id, c.account_id
    ), customers AS (
        INSERT INTO host_customers AS c (host_id, account_id, orders)
        SELECT host_id, account_id, orders FROM orders_of_customers WHERE orders <> 0 ORDER BY host_id, account_id
        ON CONFLICT (host_id, account_id) DO UPDATE SET orders = c.orders + excluded.orders
        RETURNING host_id, account_id, orders
    )
    INSERT INTO host_sales AS s (host_id, part, orders, tickets, sales, customers)
    SELECT host_id, free_part, sum(orders), sum(tickets), sum(sales), sum(customers) FROM (
        SELECT host_id, 0 AS orders, change AS tickets, sales, 0 AS customers FROM items
        UNION ALL
        SELECT host_id, o.orders, 0, 0, (c.orders > 0)::int - (c.orders > o.orders)::int
        FROM customers c JOIN orders_of_customers o USING (host_id, account_id)
    ) AS sums GROUP BY host_id ORDER BY host_id
    ON CONFLICT (host_id, part) DO UPDATE SET orders = s.orders + excluded.orders, tickets = s.tickets + excluded.tickets,
        sales = s.sales + excluded.sales, customers = s.customers + excluded.customers;
END
$$;
