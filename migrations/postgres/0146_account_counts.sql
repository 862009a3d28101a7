-- The number of accounts, as the total of their list (0100). Removed accounts are in no list, and keep their rows.
CREATE FUNCTION count_new_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(ARRAY['accounts'], ARRAY[0], ARRAY[(SELECT count(*) FROM changed WHERE NOT removed)]);
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_new_accounts AFTER INSERT ON accounts
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_new_accounts();

CREATE FUNCTION count_removed_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_list_counts(ARRAY['accounts'], ARRAY[0], ARRAY[CASE WHEN NEW.removed THEN -1 ELSE 1 END]);
    RETURN NULL;
END
$$;
CREATE TRIGGER list_counts_of_removed_accounts AFTER UPDATE OF removed ON accounts
    FOR EACH ROW WHEN (NEW.removed <> OLD.removed) EXECUTE FUNCTION count_removed_account();

-- The triggers have locked the table, so that no other transaction inserts or removes accounts until they are counted.
INSERT INTO list_counts (list, owner, part, count) SELECT 'accounts', 0, 0, count(*) FROM accounts WHERE NOT removed HAVING count(*) > 0;
