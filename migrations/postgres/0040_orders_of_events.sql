-- Hosts list the orders of their events, which are few among all orders.
CREATE INDEX order_items_event ON order_items (event_id, order_id);

-- The amount that a return has refunded, including fees. Null for returns of earlier versions, and for voided orders.
ALTER TABLE revocations ADD COLUMN amount BIGINT;
