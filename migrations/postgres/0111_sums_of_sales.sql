-- Sums of the sold tickets, for the reports, which would take the longer, the more tickets there are. A ticket is sold if it is not Void
-- and its order is Fulfilled. Triggers keep the sums in the transaction that changes tickets and orders, also for servers of the version
-- before.
CREATE TABLE event_sales (
    event_id BIGINT NOT NULL,
    -- The number of days since 1970 at which the orders were fulfilled, in UTC.
    day BIGINT NOT NULL,
    -- 0 for the number of orders, because an order may be for several sections.
    section_id BIGINT NOT NULL,
    -- The sums have up to 16 parts. Each connection adds to one of them, so that transactions rarely wait for each other.
    part BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    tickets BIGINT NOT NULL,
    sales BIGINT NOT NULL,
    fees BIGINT NOT NULL,
    PRIMARY KEY (event_id, day, section_id, part)
) WITH (fillfactor = 70);

-- The number of orders with sold tickets of each customer of a host.
CREATE TABLE host_customers (
    host_id BIGINT NOT NULL,
    account_id BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    PRIMARY KEY (host_id, account_id)
);

CREATE TABLE host_sales (
    host_id BIGINT NOT NULL,
    part BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    tickets BIGINT NOT NULL,
    sales BIGINT NOT NULL,
    customers BIGINT NOT NULL,
    PRIMARY KEY (host_id, part)
) WITH (fillfactor = 70);

-- Adds tickets of orders to the sums, or subtracts them if their numbers are negative, after their change. Each pair of an order and a
-- section comes once. An order counts with its first ticket, until its last one. For many tickets in tables without statistics, such as
-- those just restored, PostgreSQL would compile the statement, which takes over a second.
CREATE FUNCTION add_to_sales(changed_orders BIGINT[], changed_sections BIGINT[], changes BIGINT[])
RETURNS void LANGUAGE plpgsql SET jit = off AS $$
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
        SELECT event_id, day, section_id, pg_backend_pid() % 16, sum(orders), sum(tickets), sum(sales), sum(fees) FROM (
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
    SELECT host_id, pg_backend_pid() % 16, sum(orders), sum(tickets), sum(sales), sum(customers) FROM (
        SELECT host_id, 0 AS orders, change AS tickets, sales, 0 AS customers FROM items
        UNION ALL
        SELECT host_id, o.orders, 0, 0, (c.orders > 0)::int - (c.orders > o.orders)::int
        FROM customers c JOIN orders_of_customers o USING (host_id, account_id)
    ) AS sums GROUP BY host_id ORDER BY host_id
    ON CONFLICT (host_id, part) DO UPDATE SET orders = s.orders + excluded.orders, tickets = s.tickets + excluded.tickets,
        sales = s.sales + excluded.sales, customers = s.customers + excluded.customers;
END
$$;

-- The triggers of tickets run once per statement.
CREATE FUNCTION add_new_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_sales(array_agg(order_id), array_agg(section_id), array_agg(change)) FROM (
        SELECT c.order_id, c.section_id, count(*) AS change
        FROM changed c JOIN orders o ON o.id = c.order_id AND o.status = 'Fulfilled'
        WHERE c.status <> 'Void' GROUP BY c.order_id, c.section_id
    ) AS changes HAVING count(*) > 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER sales_of_new_tickets AFTER INSERT ON tickets
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION add_new_tickets();
-- Tickets are never removed.
CREATE FUNCTION add_changed_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_sales(array_agg(order_id), array_agg(section_id), array_agg(change)) FROM (
        SELECT c.order_id, c.section_id, sum(CASE c.status WHEN 'Void' THEN -1 ELSE 1 END) AS change
        FROM changed c JOIN before b ON b.id = c.id AND (b.status = 'Void') <> (c.status = 'Void')
        JOIN orders o ON o.id = c.order_id AND o.status = 'Fulfilled' GROUP BY c.order_id, c.section_id
    ) AS changes HAVING count(*) > 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER sales_of_changed_tickets AFTER UPDATE ON tickets
    REFERENCING OLD TABLE AS before NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION add_changed_tickets();
-- An order gets its tickets after it is Fulfilled. A voided order keeps those that were redeemed.
CREATE FUNCTION subtract_ended_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_sales(array_agg(order_id), array_agg(section_id), array_agg(change)) FROM (
        SELECT t.order_id, t.section_id, -count(*) AS change FROM tickets t WHERE t.order_id = NEW.id AND t.status <> 'Void'
        GROUP BY t.order_id, t.section_id
    ) AS changes HAVING count(*) > 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER sales_of_ended_orders AFTER UPDATE OF status ON orders FOR EACH ROW
    WHEN (OLD.status = 'Fulfilled' AND NEW.status <> 'Fulfilled') EXECUTE FUNCTION subtract_ended_order();

-- The triggers have locked the tables, so that no other transaction changes rows until the sums are there.
INSERT INTO event_sales (event_id, day, section_id, part, orders, tickets, sales, fees)
SELECT t.event_id, o.fulfilled / 86400000000 AS day, t.section_id, 0, 0, count(*), sum(i.unit_price), sum(i.unit_fee)
FROM tickets t JOIN orders o ON o.id = t.order_id JOIN order_items i ON i.order_id = t.order_id AND i.section_id = t.section_id
WHERE t.status <> 'Void' AND o.status = 'Fulfilled' GROUP BY t.event_id, day, t.section_id
UNION ALL
SELECT event_id, day, 0, 0, count(*), 0, 0, 0 FROM (
    SELECT DISTINCT t.order_id, t.event_id, o.fulfilled / 86400000000 AS day FROM tickets t JOIN orders o ON o.id = t.order_id
    JOIN order_items i ON i.order_id = t.order_id AND i.section_id = t.section_id
    WHERE t.status <> 'Void' AND o.status = 'Fulfilled'
) AS sold GROUP BY event_id, day;
INSERT INTO host_customers (host_id, account_id, orders)
SELECT host_id, account_id, count(*) FROM (
    SELECT DISTINCT t.order_id, e.host_id, o.account_id FROM tickets t JOIN orders o ON o.id = t.order_id
    JOIN order_items i ON i.order_id = t.order_id AND i.section_id = t.section_id JOIN events e ON e.id = t.event_id
    WHERE t.status <> 'Void' AND o.status = 'Fulfilled'
) AS sold GROUP BY host_id, account_id;
INSERT INTO host_sales (host_id, part, orders, tickets, sales, customers)
SELECT host_id, 0, sum(orders), sum(tickets), sum(sales), sum(customers) FROM (
    SELECT host_id, orders, 0 AS tickets, 0 AS sales, 1 AS customers FROM host_customers
    UNION ALL SELECT e.host_id, 0, s.tickets, s.sales, 0 FROM event_sales s JOIN events e ON e.id = s.event_id
) AS sums GROUP BY host_id;
