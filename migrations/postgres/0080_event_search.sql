-- The search of events by words. The server makes the words (normalized, case-folded, of letters and digits, separated by spaces),
-- so that both databases find the same events: the full-text index only stores and compares them. A word of a keyword is in the
-- title or in a tag; `words` also has those of the description.
CREATE TABLE event_words (
    event_id BIGINT PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
    title_words TEXT NOT NULL,
    keywords TEXT NOT NULL,
    words TEXT NOT NULL
);
CREATE INDEX event_words_words ON event_words USING gin (array_to_tsvector(string_to_array(words, ' ')));
-- The tags of an event in the form in which they are compared.
CREATE TABLE event_tags (
    tag TEXT NOT NULL,
    event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, event_id)
);
CREATE INDEX event_tags_event_id ON event_tags (event_id);

-- The events whose words are missing or out of date: a server of this version removes an event in the transaction that adds it. A
-- job writes the words of those that remain, because another program or a server of the version before has written the event.
CREATE TABLE event_search_queue (event_id BIGINT PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE);
CREATE FUNCTION queue_event_for_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event_search_queue (event_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER event_search_queue_of_new_events AFTER INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION queue_event_for_search();
CREATE TRIGGER event_search_queue_of_changed_events AFTER UPDATE OF title, description, tags ON events
    FOR EACH ROW
    WHEN (OLD.title <> NEW.title OR OLD.description <> NEW.description OR OLD.tags <> NEW.tags)
    EXECUTE FUNCTION queue_event_for_search();
INSERT INTO event_search_queue (event_id) SELECT id FROM events;
