-- The last run of each background job. For a job that one server runs for all of them, the row decides which one does.
CREATE TABLE job_runs (
    name TEXT PRIMARY KEY,
    -- The server that began the last run.
    server TEXT NOT NULL,
    started BIGINT NOT NULL,
    -- Null until the first run has ended.
    finished BIGINT,
    succeeded BOOLEAN NOT NULL,
    -- The size of the work that was done.
    processed BIGINT NOT NULL,
    -- The reason of a failure; empty for a success.
    error TEXT NOT NULL,
    -- Until then, no other server runs the job.
    leased_until BIGINT NOT NULL
);
