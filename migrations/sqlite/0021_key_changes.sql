-- How often anything was changed that decides whom a key stands for. A server remembers keys for as long as this stays the same,
-- whichever server or program makes the change. The use of a key changes nothing of that.
CREATE TABLE key_changes (count BIGINT NOT NULL);
INSERT INTO key_changes (count) VALUES (0);

CREATE TRIGGER key_changes_of_keys AFTER UPDATE OF hash, kind, role, account_id, token_id, ended ON api_keys
BEGIN
    UPDATE key_changes SET count = count + 1;
END;
CREATE TRIGGER key_changes_of_removed_keys AFTER DELETE ON api_keys
BEGIN
    UPDATE key_changes SET count = count + 1;
END;
CREATE TRIGGER key_changes_of_accounts AFTER UPDATE OF role, activated ON accounts
WHEN old.role <> new.role OR old.activated <> new.activated
BEGIN
    UPDATE key_changes SET count = count + 1;
END;
