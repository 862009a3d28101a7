-- The number of active price modifiers of each section. It bounds the size of the section in a page without reading them. Triggers keep
-- it, also for servers of the version before.
ALTER TABLE sections ADD COLUMN active_modifiers BIGINT NOT NULL DEFAULT 0;
UPDATE sections SET active_modifiers = (SELECT count(*) FROM modifiers m WHERE m.section_id = sections.id AND m.active)
WHERE id IN (SELECT section_id FROM modifiers WHERE active);

-- Whoever changes a modifier has locked its event, so this locks the section in the usual order.
CREATE FUNCTION count_active_modifiers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sections SET active_modifiers = active_modifiers + coalesce(NEW.active, false)::int - coalesce(OLD.active, false)::int
    WHERE id = coalesce(NEW.section_id, OLD.section_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER active_modifiers_of_new_modifiers AFTER INSERT ON modifiers
    FOR EACH ROW WHEN (NEW.active) EXECUTE FUNCTION count_active_modifiers();
CREATE TRIGGER active_modifiers_of_modifiers AFTER UPDATE OF active ON modifiers
    FOR EACH ROW WHEN (NEW.active <> OLD.active) EXECUTE FUNCTION count_active_modifiers();
CREATE TRIGGER active_modifiers_of_removed_modifiers AFTER DELETE ON modifiers
    FOR EACH ROW WHEN (OLD.active) EXECUTE FUNCTION count_active_modifiers();

-- Prices depend only on modifiers that have not ended.
CREATE INDEX modifiers_section_id_end ON modifiers (section_id, coalesce(available_to, 9223372036854775807)) WHERE active;
