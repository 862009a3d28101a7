-- Price modifiers: what a section's tickets cost more or less at some time, or in orders of some size.
-- Amounts are minor units of the currency; a bound that is null does not bound.

CREATE TABLE modifiers (
    id BIGINT PRIMARY KEY,
    section_id BIGINT NOT NULL REFERENCES sections (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    price_delta BIGINT NOT NULL,
    available_from BIGINT,
    available_to BIGINT,
    min_order BIGINT,
    max_order BIGINT,
    active BOOLEAN NOT NULL,
    CONSTRAINT modifiers_section_id_name_key UNIQUE (section_id, name)
);

-- Which modifiers made the unit price of an order's item. Several can, so the one column that there was, never yet filled, goes.
CREATE TABLE order_item_modifiers (
    order_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    -- Not a foreign key: an order stays as it was placed when the modifier is removed.
    modifier_id BIGINT NOT NULL,
    PRIMARY KEY (order_id, position, modifier_id),
    FOREIGN KEY (order_id, position) REFERENCES order_items (order_id, position) ON DELETE CASCADE
);
ALTER TABLE order_items DROP COLUMN modifier_id;
