-- Indexes for what is looked for often and was found by reading whole tables.

-- The refunds of a payment, and what the ledger has of it; the index of sales alone doesn't serve for them.
CREATE INDEX transactions_payment ON transactions (payment_id);
-- The few accounts of the platform's staff, who are mailed and counted among all the others.
CREATE INDEX accounts_administrators ON accounts (id) WHERE role = 'administrator';
-- The few keys that are integrations, which are listed, among those of all sessions.
CREATE INDEX api_keys_integrations ON api_keys (id) WHERE kind = 'integration';
-- A foreign key, which is looked up when a section is removed.
CREATE INDEX admissions_section ON admissions (section_id);
