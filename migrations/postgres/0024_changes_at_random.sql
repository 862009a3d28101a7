-- A standby that takes over without the last commits would count to the same numbers once more, for other changes than those that
-- servers remember. So both counts are drawn at random with every change: two that are equal are of the same one.
CREATE OR REPLACE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE key_changes SET count = (random() * 9e18)::bigint;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION count_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE event_changes SET count = (random() * 9e18)::bigint WHERE xmin <> pg_current_xact_id()::xid;
    RETURN NULL;
END
$$;
