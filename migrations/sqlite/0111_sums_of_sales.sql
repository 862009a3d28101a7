-- Sums of the sold tickets, for the reports, which would take the longer, the more tickets there are. A ticket is sold if it is not Void
-- and its order is Fulfilled. Triggers keep the sums in the transaction that changes tickets and orders, also for servers of the version
-- before.
CREATE TABLE event_sales (
    event_id BIGINT NOT NULL,
    -- The number of days since 1970 at which the orders were fulfilled, in UTC.
    day BIGINT NOT NULL,
    -- 0 for the number of orders, because an order may be for several sections.
    section_id BIGINT NOT NULL,
    -- A number is the sum of all parts: several on PostgreSQL, also after a copy from there, and part 0 here.
    part BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    tickets BIGINT NOT NULL,
    sales BIGINT NOT NULL,
    fees BIGINT NOT NULL,
    PRIMARY KEY (event_id, day, section_id, part)
) WITHOUT ROWID;

-- The number of orders with sold tickets of each customer of a host.
CREATE TABLE host_customers (
    host_id BIGINT NOT NULL,
    account_id BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    PRIMARY KEY (host_id, account_id)
) WITHOUT ROWID;

CREATE TABLE host_sales (
    host_id BIGINT NOT NULL,
    part BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    tickets BIGINT NOT NULL,
    sales BIGINT NOT NULL,
    customers BIGINT NOT NULL,
    PRIMARY KEY (host_id, part)
) WITHOUT ROWID;

INSERT INTO event_sales (event_id, day, section_id, part, orders, tickets, sales, fees)
SELECT t.event_id, o.fulfilled / 86400000000 AS day, t.section_id, 0, 0, count(*), sum(i.unit_price), sum(i.unit_fee)
FROM tickets t JOIN orders o ON o.id = t.order_id JOIN order_items i ON i.order_id = t.order_id AND i.section_id = t.section_id
WHERE t.status <> 'Void' AND o.status = 'Fulfilled' GROUP BY t.event_id, day, t.section_id
UNION ALL
SELECT event_id, day, 0, 0, count(*), 0, 0, 0 FROM (
    SELECT DISTINCT t.order_id, t.event_id, o.fulfilled / 86400000000 AS day FROM tickets t JOIN orders o ON o.id = t.order_id
    JOIN order_items i ON i.order_id = t.order_id AND i.section_id = t.section_id
    WHERE t.status <> 'Void' AND o.status = 'Fulfilled'
) GROUP BY event_id, day;
INSERT INTO host_customers (host_id, account_id, orders)
SELECT host_id, account_id, count(*) FROM (
    SELECT DISTINCT t.order_id, e.host_id, o.account_id FROM tickets t JOIN orders o ON o.id = t.order_id
    JOIN order_items i ON i.order_id = t.order_id AND i.section_id = t.section_id JOIN events e ON e.id = t.event_id
    WHERE t.status <> 'Void' AND o.status = 'Fulfilled'
) GROUP BY host_id, account_id;
INSERT INTO host_sales (host_id, part, orders, tickets, sales, customers)
SELECT host_id, 0, sum(orders), sum(tickets), sum(sales), sum(customers) FROM (
    SELECT host_id, orders, 0 AS tickets, 0 AS sales, 1 AS customers FROM host_customers
    UNION ALL SELECT e.host_id, 0, s.tickets, s.sales, 0 FROM event_sales s JOIN events e ON e.id = s.event_id
) GROUP BY host_id;

CREATE TRIGGER host_sales_of_new_customers AFTER INSERT ON host_customers
BEGIN
    INSERT INTO host_sales (host_id, part, orders, tickets, sales, customers)
    VALUES (new.host_id, 0, new.orders, 0, 0, new.orders > 0)
    ON CONFLICT (host_id, part) DO UPDATE SET orders = orders + excluded.orders, customers = customers + excluded.customers;
END;
CREATE TRIGGER host_sales_of_changed_customers AFTER UPDATE OF orders ON host_customers
BEGIN
    INSERT INTO host_sales (host_id, part, orders, tickets, sales, customers)
    VALUES (new.host_id, 0, new.orders - old.orders, 0, 0, (new.orders > 0) - (old.orders > 0))
    ON CONFLICT (host_id, part) DO UPDATE SET orders = orders + excluded.orders, customers = customers + excluded.customers;
END;

-- Not for reading. An inserted row adds a ticket to the sums, or subtracts it if `change` is -1. The order counts with its first ticket,
-- until its last one. If it is no longer Fulfilled, its tickets are subtracted by ascending identifier. Without the signs, the database
-- could read all tickets of the event by its index.
CREATE VIEW changes_of_sales (ticket_id, order_id, event_id, section_id, change) AS SELECT 0, 0, 0, 0, 0;
CREATE TRIGGER sums_of_sales INSTEAD OF INSERT ON changes_of_sales
BEGIN
    INSERT INTO event_sales (event_id, day, section_id, part, orders, tickets, sales, fees)
    SELECT new.event_id, o.fulfilled / 86400000000, new.section_id, 0, 0, new.change, new.change * i.unit_price,
        new.change * i.unit_fee
    FROM orders o JOIN order_items i ON i.order_id = o.id AND i.section_id = new.section_id WHERE o.id = new.order_id
    ON CONFLICT (event_id, day, section_id, part) DO UPDATE
    SET tickets = tickets + excluded.tickets, sales = sales + excluded.sales, fees = fees + excluded.fees;

    INSERT INTO event_sales (event_id, day, section_id, part, orders, tickets, sales, fees)
    SELECT new.event_id, o.fulfilled / 86400000000, 0, 0, new.change, 0, 0, 0 FROM orders o
    WHERE o.id = new.order_id AND NOT EXISTS (SELECT 1 FROM tickets t
        WHERE t.order_id = o.id AND +t.event_id = new.event_id AND t.status <> 'Void' AND t.id <> new.ticket_id
            AND (o.status = 'Fulfilled' OR t.id > new.ticket_id))
    ON CONFLICT (event_id, day, section_id, part) DO UPDATE SET orders = orders + excluded.orders;

    INSERT INTO host_sales (host_id, part, orders, tickets, sales, customers)
    SELECT e.host_id, 0, 0, new.change, new.change * i.unit_price, 0
    FROM events e JOIN order_items i ON i.order_id = new.order_id AND i.section_id = new.section_id WHERE e.id = new.event_id
    ON CONFLICT (host_id, part) DO UPDATE SET tickets = tickets + excluded.tickets, sales = sales + excluded.sales;

    INSERT INTO host_customers (host_id, account_id, orders)
    SELECT e.host_id, o.account_id, new.change FROM orders o JOIN events e ON e.id = new.event_id
    WHERE o.id = new.order_id AND NOT EXISTS (SELECT 1 FROM tickets t JOIN events x ON x.id = +t.event_id AND x.host_id = e.host_id
        WHERE t.order_id = o.id AND t.status <> 'Void' AND t.id <> new.ticket_id
            AND (o.status = 'Fulfilled' OR t.id > new.ticket_id))
    ON CONFLICT (host_id, account_id) DO UPDATE SET orders = orders + excluded.orders;
END;

CREATE TRIGGER sales_of_new_tickets AFTER INSERT ON tickets
WHEN new.status <> 'Void' AND (SELECT o.status FROM orders o WHERE o.id = new.order_id) = 'Fulfilled'
BEGIN
    INSERT INTO changes_of_sales VALUES (new.id, new.order_id, new.event_id, new.section_id, 1);
END;
-- Tickets are never removed.
CREATE TRIGGER sales_of_changed_tickets AFTER UPDATE OF status ON tickets
WHEN (old.status = 'Void') <> (new.status = 'Void') AND (SELECT o.status FROM orders o WHERE o.id = new.order_id) = 'Fulfilled'
BEGIN
    INSERT INTO changes_of_sales
    VALUES (new.id, new.order_id, new.event_id, new.section_id, CASE new.status WHEN 'Void' THEN -1 ELSE 1 END);
END;
-- An order gets its tickets after it is Fulfilled. A voided order keeps those that were redeemed.
CREATE TRIGGER sales_of_ended_orders AFTER UPDATE OF status ON orders WHEN old.status = 'Fulfilled' AND new.status <> 'Fulfilled'
BEGIN
    INSERT INTO changes_of_sales SELECT t.id, t.order_id, t.event_id, t.section_id, -1 FROM tickets t
    WHERE t.order_id = new.id AND t.status <> 'Void' ORDER BY t.id;
END;
