-- Scans that gates made without a connection, and uploaded later.

-- The time at which the last admission of a ticket by a device was undone. A gate repeats an upload until it has the response, and
-- must not admit the ticket again by a scan from before.
CREATE TABLE undone_admissions (
    ticket_id BIGINT NOT NULL REFERENCES tickets (id),
    device TEXT NOT NULL,
    undone BIGINT NOT NULL,
    PRIMARY KEY (ticket_id, device)
);

-- Tickets that a gate has admitted although another gate had admitted them: the admission that counts, and the scan of the other
-- gate. An admission with a conflict can't be undone.
CREATE TABLE admission_conflicts (
    id BIGINT PRIMARY KEY,
    event_id BIGINT NOT NULL REFERENCES events (id),
    ticket_id BIGINT NOT NULL REFERENCES tickets (id),
    admission_id BIGINT NOT NULL REFERENCES admissions (id),
    redeemer TEXT NOT NULL,
    device TEXT NOT NULL,
    -- There is no reference, because a token may be removed while its conflicts stay.
    token_id BIGINT,
    scanned BIGINT NOT NULL,
    recorded BIGINT NOT NULL
);
CREATE INDEX admission_conflicts_event ON admission_conflicts (event_id, id);
-- A gate has one conflict for a ticket, however often it uploads its scans.
CREATE UNIQUE INDEX admission_conflicts_ticket ON admission_conflicts (ticket_id, device, coalesce(token_id, 0));
CREATE INDEX admission_conflicts_admission ON admission_conflicts (admission_id);
