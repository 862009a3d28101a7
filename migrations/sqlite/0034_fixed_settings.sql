-- Settings that give the stored data their meaning, fixed by the first start. Amounts are stored without a currency: with another
-- one, every amount would be a different sum of money.
CREATE TABLE fixed_settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
