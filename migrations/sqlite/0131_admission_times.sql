-- The time from which gates admit tickets of an event, and the last time at which its host or the platform changed it: calendar
-- programs take a file as newer by it.
ALTER TABLE events ADD COLUMN admission_from BIGINT;
ALTER TABLE events ADD COLUMN revised BIGINT;
