-- The end of the event and the time from which gates admit, as the holders of tickets know them. Null in the rows of a server of the
-- version before, which reports neither; admission_from is also null without such a time.
ALTER TABLE event_notices ADD COLUMN ends BIGINT;
ALTER TABLE event_notices ADD COLUMN admission_from BIGINT;
