-- The number of orders that a run could not return since it began, or began again, and the time from which it continues: a run with such
-- orders begins again after a pause.
ALTER TABLE event_returns ADD COLUMN failed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE event_returns ADD COLUMN due BIGINT NOT NULL DEFAULT 0;
