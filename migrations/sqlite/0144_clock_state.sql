-- The time at which a server last ran. A process that starts much later deletes nothing more for a day: the machine's clock may be ahead.
CREATE TABLE clock_state (
    -- 0 until a server has run.
    last_seen BIGINT NOT NULL,
    -- The time before a step forward that is not accepted yet, and the time at which it will be.
    before_step BIGINT,
    accepted_at BIGINT
);
INSERT INTO clock_state (last_seen) SELECT coalesce(max(finished), 0) FROM job_runs;
