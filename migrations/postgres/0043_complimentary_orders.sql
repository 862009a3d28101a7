-- Orders that a host has issued without a charge.
ALTER TABLE orders ADD COLUMN complimentary BOOLEAN NOT NULL DEFAULT FALSE;
