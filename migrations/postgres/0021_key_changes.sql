-- How often anything was changed that decides whom a key stands for. A server remembers keys for as long as this stays the same,
-- whichever server or program makes the change. The use of a key changes nothing of that.
CREATE TABLE key_changes (count BIGINT NOT NULL);
INSERT INTO key_changes (count) VALUES (0);

CREATE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE key_changes SET count = count + 1;
    RETURN NULL;
END
$$;
-- Deferred until the commit: nobody waits for the one row for longer than a commit takes, nor in a circle.
CREATE CONSTRAINT TRIGGER key_changes_of_keys AFTER UPDATE OF hash, kind, role, account_id, token_id, ended OR DELETE ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_key_change();
CREATE CONSTRAINT TRIGGER key_changes_of_accounts AFTER UPDATE OF role, activated ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.role <> NEW.role OR OLD.activated <> NEW.activated) EXECUTE FUNCTION count_key_change();
