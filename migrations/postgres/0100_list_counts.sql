-- The numbers of rows of the lists that can become long. A list's total is read here, because counting its rows takes the longer, the
-- more there are. Triggers keep the numbers in the transaction that changes the rows, also for servers of the version before.
CREATE TABLE list_counts (
    -- The name of the list, and the identifier of the row to which it belongs; 0 for a list of all rows.
    list TEXT NOT NULL,
    owner BIGINT NOT NULL,
    -- The number is the sum of up to 16 parts. Each connection adds to one of them, so that transactions rarely wait for each other.
    part BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (list, owner, part)
) WITH (fillfactor = 70);

-- Adds to the numbers of lists. The rows are sorted, so that transactions lock them in the same order.
CREATE FUNCTION add_to_list_counts(lists TEXT[], owners BIGINT[], counts BIGINT[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO list_counts AS c (list, owner, part, count)
    SELECT t.list, t.owner, pg_backend_pid() % 16, sum(t.count) FROM unnest(lists, owners, counts) AS t (list, owner, count)
    GROUP BY t.list, t.owner HAVING sum(t.count) <> 0 ORDER BY t.list, t.owner
    ON CONFLICT (list, owner, part) DO UPDATE SET count = c.count + excluded.count;
END
$$;

-- These triggers run once per statement. Each has the inserted or deleted rows in the table `changed`.
CREATE FUNCTION count_orders() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg(list), array_agg(owner), array_agg(count)) FROM (
        SELECT 'orders' AS list, 0 AS owner, count(*) * TG_ARGV[0]::int AS count FROM changed
        UNION ALL SELECT 'account orders', account_id, count(*) * TG_ARGV[0]::int FROM changed GROUP BY account_id
    ) AS counts;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_orders AFTER INSERT ON orders
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_orders('1');
CREATE TRIGGER list_counts_of_removed_orders AFTER DELETE ON orders
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_orders('-1');

-- An order counts once for an event, however many of its items are for the event: with its first ones, until its last ones.
CREATE FUNCTION count_order_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg('event orders'::text), array_agg(event_id), array_agg(TG_ARGV[0]::bigint)) FROM (
        SELECT c.event_id FROM changed c GROUP BY c.order_id, c.event_id
        HAVING (SELECT count(*) FROM order_items i WHERE i.order_id = c.order_id AND i.event_id = c.event_id)
            = CASE TG_ARGV[0] WHEN '1' THEN count(*) ELSE 0 END
    ) AS counts;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_order_items AFTER INSERT ON order_items
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_order_items('1');
CREATE TRIGGER list_counts_of_removed_order_items AFTER DELETE ON order_items
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_order_items('-1');

-- The ledger has no update and no delete.
CREATE FUNCTION count_transactions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(ARRAY['transactions'], ARRAY[0], ARRAY[(SELECT count(*) FROM changed)]);
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_transactions AFTER INSERT ON transactions
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();
CREATE FUNCTION count_transaction_shares() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg('host transactions'::text), array_agg(host_id), array_agg(1::bigint)) FROM changed;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_transaction_shares AFTER INSERT ON transaction_shares
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_transaction_shares();

-- Tickets that were replaced are in no list of an account. Tickets are never removed.
CREATE FUNCTION count_new_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg('account tickets'::text), array_agg(owner_id), array_agg(1::bigint))
    FROM changed WHERE replaced_by IS NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_tickets AFTER INSERT ON tickets
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_new_tickets();
-- Once per row, because a trigger for certain columns has no table of the changed rows.
CREATE FUNCTION count_changed_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(ARRAY['account tickets', 'account tickets'], ARRAY[OLD.owner_id, NEW.owner_id],
        ARRAY[-(OLD.replaced_by IS NULL)::int, (NEW.replaced_by IS NULL)::int]);
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_changed_tickets AFTER UPDATE OF owner_id, replaced_by ON tickets FOR EACH ROW
    WHEN (OLD.owner_id <> NEW.owner_id OR (OLD.replaced_by IS NULL) <> (NEW.replaced_by IS NULL))
    EXECUTE FUNCTION count_changed_ticket();

CREATE FUNCTION count_admissions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg('section admissions'::text), array_agg(section_id), array_agg(TG_ARGV[0]::bigint))
    FROM changed;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_admissions AFTER INSERT ON admissions
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_admissions('1');
CREATE TRIGGER list_counts_of_removed_admissions AFTER DELETE ON admissions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_admissions('-1');

-- Transfers are never removed, and an account sends none to itself.
CREATE FUNCTION count_transfers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(array_agg(list), array_agg(owner), array_agg(1::bigint)) FROM (
        SELECT 'sent transfers' AS list, sender_id AS owner FROM changed
        UNION ALL SELECT 'received transfers', recipient_id FROM changed
    ) AS counts;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_transfers AFTER INSERT ON transfers
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_transfers();

-- Events that every caller may see are counted apart from those that only their host and the platform's staff see.
CREATE FUNCTION count_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM add_to_list_counts(
            CASE WHEN OLD.status IN ('Listed', 'Cancelled') THEN ARRAY['open events', 'open events of host']
                ELSE ARRAY['closed events', 'closed events of host'] END,
            ARRAY[0, OLD.host_id], ARRAY[-1, -1]);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM add_to_list_counts(
            CASE WHEN NEW.status IN ('Listed', 'Cancelled') THEN ARRAY['open events', 'open events of host']
                ELSE ARRAY['closed events', 'closed events of host'] END,
            ARRAY[0, NEW.host_id], ARRAY[1, 1]);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_and_removed_events AFTER INSERT OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION count_event();
CREATE TRIGGER list_counts_of_changed_events AFTER UPDATE OF status, host_id ON events FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR OLD.host_id <> NEW.host_id) EXECUTE FUNCTION count_event();

-- The triggers have locked the tables, so that no other transaction changes rows until the numbers are counted.
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
