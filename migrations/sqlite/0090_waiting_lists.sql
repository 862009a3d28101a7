-- Waiting lists of sold-out sections. Places that become free are offered to the accounts of a list in the order of joining.
CREATE TABLE waiting_entries (
    id BIGINT PRIMARY KEY,
    section_id BIGINT NOT NULL REFERENCES sections (id) ON DELETE CASCADE,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    quantity BIGINT NOT NULL,
    -- Waiting, Offered, Ordered, Lapsed or Closed.
    status TEXT NOT NULL,
    joined BIGINT NOT NULL,
    -- The start and the end of the offer; null before there is one.
    offered BIGINT,
    expires BIGINT
);
-- An account that joins again replaces its ended entry.
CREATE UNIQUE INDEX waiting_entries_section_id_account_id_key ON waiting_entries (section_id, account_id);
CREATE INDEX waiting_entries_account ON waiting_entries (account_id, id);
CREATE INDEX waiting_entries_account_open ON waiting_entries (account_id) WHERE status IN ('Waiting', 'Offered');
CREATE INDEX waiting_entries_waiting ON waiting_entries (section_id, id) WHERE status = 'Waiting';
CREATE INDEX waiting_entries_offered ON waiting_entries (section_id, expires) WHERE status = 'Offered';

-- The number of entries that wait, and the number of places in open offers. Offered places also count in `reserved`, so servers of
-- the version before don't sell them. An order reads both with the places that are left, so a section without a list costs nothing.
ALTER TABLE sections ADD COLUMN waiting BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sections ADD COLUMN offered BIGINT NOT NULL DEFAULT 0;
CREATE INDEX sections_waiting ON sections (id) WHERE waiting > 0 OR offered > 0;
