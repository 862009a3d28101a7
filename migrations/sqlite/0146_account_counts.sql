-- The number of accounts, as the total of their list (0100). Removed accounts are in no list, and keep their rows.
CREATE TRIGGER list_counts_of_new_accounts AFTER INSERT ON accounts WHEN NOT new.removed
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('accounts', 0, 0, 1)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER list_counts_of_removed_accounts AFTER UPDATE OF removed ON accounts WHEN new.removed <> old.removed
BEGIN
    INSERT INTO list_counts (list, owner, part, count) VALUES ('accounts', 0, 0, old.removed - new.removed)
    ON CONFLICT (list, owner, part) DO UPDATE SET count = count + excluded.count;
END;

INSERT INTO list_counts (list, owner, part, count) SELECT 'accounts', 0, 0, count(*) FROM accounts WHERE NOT removed HAVING count(*) > 0;
