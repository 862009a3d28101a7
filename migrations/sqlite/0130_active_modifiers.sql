-- The number of active price modifiers of each section. It bounds the size of the section in a page without reading them. Triggers keep
-- it, also for servers of the version before.
ALTER TABLE sections ADD COLUMN active_modifiers BIGINT NOT NULL DEFAULT 0;
UPDATE sections SET active_modifiers = (SELECT count(*) FROM modifiers m WHERE m.section_id = sections.id AND m.active)
WHERE id IN (SELECT section_id FROM modifiers WHERE active);

CREATE TRIGGER active_modifiers_of_new_modifiers AFTER INSERT ON modifiers WHEN new.active
BEGIN
    UPDATE sections SET active_modifiers = active_modifiers + 1 WHERE id = new.section_id;
END;
CREATE TRIGGER active_modifiers_of_modifiers AFTER UPDATE OF active ON modifiers WHEN new.active <> old.active
BEGIN
    UPDATE sections SET active_modifiers = active_modifiers + CASE WHEN new.active THEN 1 ELSE -1 END WHERE id = new.section_id;
END;
CREATE TRIGGER active_modifiers_of_removed_modifiers AFTER DELETE ON modifiers WHEN old.active
BEGIN
    UPDATE sections SET active_modifiers = active_modifiers - 1 WHERE id = old.section_id;
END;

-- Prices depend only on modifiers that have not ended.
CREATE INDEX modifiers_section_id_end ON modifiers (section_id, coalesce(available_to, 9223372036854775807)) WHERE active;
