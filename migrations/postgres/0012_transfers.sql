-- Handing tickets on: one account offers tickets to another, which claims or rejects them. The history of both is kept.

CREATE TABLE transfers (
    id BIGINT PRIMARY KEY,
    -- Pending, Claimed, Cancelled or Rejected. Whoever ends a transfer asks for Pending in the same update.
    status TEXT NOT NULL,
    sender_id BIGINT NOT NULL REFERENCES accounts (id),
    recipient_id BIGINT NOT NULL REFERENCES accounts (id)
);
CREATE INDEX transfers_sender ON transfers (sender_id, id);
CREATE INDEX transfers_recipient ON transfers (recipient_id, id);

-- What a transfer offers. A ticket is in any number of transfers, one after the other: while one is open the ticket is Pending,
-- and only an Issued one can be offered.
CREATE TABLE transfer_tickets (
    transfer_id BIGINT NOT NULL REFERENCES transfers (id),
    ticket_id BIGINT NOT NULL REFERENCES tickets (id),
    PRIMARY KEY (transfer_id, ticket_id)
);
CREATE INDEX transfer_tickets_ticket ON transfer_tickets (ticket_id);
