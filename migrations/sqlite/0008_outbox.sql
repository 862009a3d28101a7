-- Mail on its way. A mail is written in the transaction of what it tells of, so that neither goes without the other, and a job
-- hands it over later. Its row goes when it has been handed over: a mail may hold a code, and nothing readable stays.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- Emptied when the mail is given up.
    body TEXT NOT NULL,
    created BIGINT NOT NULL,
    -- Tries that were begun.
    attempts BIGINT NOT NULL,
    -- When to try next. Whoever takes a mail moves this on, so that nobody else takes it and a crashed server's comes back.
    -- Null once the mail is given up.
    due BIGINT,
    failed BIGINT
);
CREATE INDEX outbox_due ON outbox (due) WHERE due IS NOT NULL;
