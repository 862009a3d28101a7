-- A changed event changes all its numbers of lists by one statement, which locks them in their order (0100). Two statements, for the
-- list that it leaves and the one that it joins, locked them in different orders when one event was published and another withdrawn.
CREATE OR REPLACE FUNCTION count_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lists TEXT[] := '{}';
    owners BIGINT[] := '{}';
    counts BIGINT[] := '{}';
BEGIN
    IF TG_OP <> 'INSERT' THEN
        lists := lists || CASE WHEN OLD.status IN ('Listed', 'Cancelled') THEN ARRAY['open events', 'open events of host']
            ELSE ARRAY['closed events', 'closed events of host'] END;
        owners := owners || ARRAY[0, OLD.host_id];
        counts := counts || ARRAY[-1, -1]::bigint[];
    END IF;
    IF TG_OP <> 'DELETE' THEN
        lists := lists || CASE WHEN NEW.status IN ('Listed', 'Cancelled') THEN ARRAY['open events', 'open events of host']
            ELSE ARRAY['closed events', 'closed events of host'] END;
        owners := owners || ARRAY[0, NEW.host_id];
        counts := counts || ARRAY[1, 1]::bigint[];
    END IF;
    PERFORM add_to_list_counts(lists, owners, counts);
    RETURN NULL;
END
$$;
