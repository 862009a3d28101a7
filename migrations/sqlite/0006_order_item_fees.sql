-- What each ticket of an order item was charged as its convenience fee, so that a report, a return or the ledger can tell
-- the fees of a part of an order, whatever the fee setting has become since.
-- For the orders that are there the default steps of the setting say it; where the order has one item, its own fees do.

ALTER TABLE order_items ADD COLUMN unit_fee BIGINT NOT NULL DEFAULT 0;
UPDATE order_items SET unit_fee = CASE
    WHEN unit_price = 0 THEN 0
    WHEN unit_price <= 5000 THEN 99
    WHEN unit_price <= 10000 THEN 199
    WHEN unit_price <= 15000 THEN 299
    WHEN unit_price <= 20000 THEN 399
    ELSE 499
END;
UPDATE order_items SET unit_fee = (SELECT o.fees / order_items.quantity FROM orders o WHERE o.id = order_items.order_id)
WHERE (SELECT count(*) FROM order_items i WHERE i.order_id = order_items.order_id) = 1;
