-- Admitting: the tokens that let staff redeem tickets, and who was let in when.

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    -- Kept readable, because the API shows a token's code to the event's hosts.
    code TEXT NOT NULL CONSTRAINT tokens_code_key UNIQUE,
    -- The global token covers every section of its event, those added later too, and so has no rows below.
    global BOOLEAN NOT NULL
);
CREATE INDEX tokens_event ON tokens (event_id, id);

CREATE TABLE token_sections (
    token_id BIGINT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    section_id BIGINT NOT NULL REFERENCES sections (id) ON DELETE CASCADE,
    PRIMARY KEY (token_id, section_id)
);
CREATE INDEX token_sections_section ON token_sections (section_id);

CREATE TABLE admissions (
    id INTEGER PRIMARY KEY,
    event_id BIGINT NOT NULL REFERENCES events (id),
    section_id BIGINT NOT NULL REFERENCES sections (id),
    -- A ticket admits once.
    ticket_id BIGINT NOT NULL CONSTRAINT admissions_ticket_id_key UNIQUE REFERENCES tickets (id),
    patron_id BIGINT NOT NULL REFERENCES accounts (id),
    redeemer TEXT NOT NULL,
    device TEXT NOT NULL,
    admitted BIGINT NOT NULL
);
CREATE INDEX admissions_event ON admissions (event_id, id);
