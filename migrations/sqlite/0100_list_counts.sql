-- The numbers of rows of the lists that can become long. A list's total is read here, because counting its rows takes the longer, the
-- more there are. Triggers keep the numbers in the transaction that changes the rows, also for servers of the version before.
CREATE TABLE list_counts (
    -- The name of the list, and the identifier of the row to which it belongs; 0 for a list of all rows.
    list TEXT NOT NULL,
    owner BIGINT NOT NULL,
    -- The number is the sum of all parts: several on PostgreSQL, also after a copy from there, and part 0 here.
    part BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (list, owner, part)
) WITHOUT ROWID;

CREATE TRIGGER list_counts_of_new_orders AFTER INSERT ON orders
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('orders', 0, 0, 1), ('account orders', new.account_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_removed_orders AFTER DELETE ON orders
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('orders', 0, 0, -1), ('account orders', old.account_id, 0, -1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
END;

-- An order counts once for an event, however many of its items are for the event.
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

-- The ledger has no update and no delete.
CREATE TRIGGER list_counts_of_new_transactions AFTER INSERT ON transactions
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('transactions', 0, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_new_transaction_shares AFTER INSERT ON transaction_shares
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('host transactions', new.host_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;

-- Tickets that were replaced are in no list of an account. Tickets are never removed.
CREATE TRIGGER list_counts_of_new_tickets AFTER INSERT ON tickets WHEN new.replaced_by IS NULL
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('account tickets', new.owner_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_changed_tickets AFTER UPDATE OF owner_id, replaced_by ON tickets
WHEN old.owner_id <> new.owner_id OR (old.replaced_by IS NULL) <> (new.replaced_by IS NULL)
BEGIN
    INSERT INTO list_counts (list, owner, part, count)
    VALUES ('account tickets', old.owner_id, 0, -(old.replaced_by IS NULL)), ('account tickets', new.owner_id, 0, new.replaced_by IS NULL)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER list_counts_of_new_admissions AFTER INSERT ON admissions
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('section admissions', new.section_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_removed_admissions AFTER DELETE ON admissions
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('section admissions', old.section_id, 0, -1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
END;

-- Transfers are never removed, and an account sends none to itself.
CREATE TRIGGER list_counts_of_new_transfers AFTER INSERT ON transfers
BEGIN
    INSERT INTO list_counts (list, owner, part, count)
    VALUES ('sent transfers', new.sender_id, 0, 1), ('received transfers', new.recipient_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;

-- Events that every caller may see are counted apart from those that only their host and the platform's staff see.
CREATE TRIGGER list_counts_of_new_events AFTER INSERT ON events
BEGIN
    INSERT INTO list_counts (list, owner, part, count)
    VALUES (CASE WHEN new.status IN ('Listed', 'Cancelled') THEN 'open events' ELSE 'closed events' END, 0, 0, 1),
        (CASE WHEN new.status IN ('Listed', 'Cancelled') THEN 'open events of host' ELSE 'closed events of host' END, new.host_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_removed_events AFTER DELETE ON events
BEGIN
    INSERT INTO list_counts (list, owner, part, count)
    VALUES (CASE WHEN old.status IN ('Listed', 'Cancelled') THEN 'open events' ELSE 'closed events' END, 0, 0, -1),
        (CASE WHEN old.status IN ('Listed', 'Cancelled') THEN 'open events of host' ELSE 'closed events of host' END, old.host_id, 0, -1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count - 1;
END;
CREATE TRIGGER list_counts_of_changed_events AFTER UPDATE OF status, host_id ON events
WHEN old.status <> new.status OR old.host_id <> new.host_id
BEGIN
    INSERT INTO list_counts (list, owner, part, count)
    VALUES (CASE WHEN old.status IN ('Listed', 'Cancelled') THEN 'open events' ELSE 'closed events' END, 0, 0, -1),
        (CASE WHEN old.status IN ('Listed', 'Cancelled') THEN 'open events of host' ELSE 'closed events of host' END, old.host_id, 0, -1),
        (CASE WHEN new.status IN ('Listed', 'Cancelled') THEN 'open events' ELSE 'closed events' END, 0, 0, 1),
        (CASE WHEN new.status IN ('Listed', 'Cancelled') THEN 'open events of host' ELSE 'closed events of host' END, new.host_id, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + excluded.count;
END;

INSERT INTO list_counts (list, owner, part, count)
SELECT 'orders', 0, 0, count(*) FROM orders HAVING count(*) > 0
UNION ALL SELECT 'account orders', account_id, 0, count(*) FROM orders GROUP BY account_id
UNION ALL SELECT 'event orders', event_id, 0, count(DISTINCT order_id) FROM order_items GROUP BY event_id
UNION ALL SELECT 'transactions', 0, 0, count(*) FROM transactions HAVING count(*) > 0
UNION ALL SELECT 'host transactions', host_id, 0, count(*) FROM transaction_shares GROUP BY host_id
UNION ALL SELECT 'account tickets', owner_id, 0, count(*) FROM tickets WHERE replaced_by IS NULL GROUP BY owner_id
UNION ALL SELECT 'section admissions', section_id, 0, count(*) FROM admissions GROUP BY section_id
UNION ALL SELECT 'sent transfers', sender_id, 0, count(*) FROM transfers GROUP BY sender_id
UNION ALL SELECT 'received transfers', recipient_id, 0, count(*) FROM transfers GROUP BY recipient_id
UNION ALL SELECT 'open events', 0, 0, count(*) FROM events WHERE status IN ('Listed', 'Cancelled') HAVING count(*) > 0
UNION ALL SELECT 'closed events', 0, 0, count(*) FROM events WHERE status NOT IN ('Listed', 'Cancelled') HAVING count(*) > 0
UNION ALL SELECT 'open events of host', host_id, 0, count(*) FROM events WHERE status IN ('Listed', 'Cancelled') GROUP BY host_id
UNION ALL SELECT 'closed events of host', host_id, 0, count(*) FROM events WHERE status NOT IN ('Listed', 'Cancelled') GROUP BY host_id;
