-- The search of events by words. The server makes the words (normalized, case-folded, of letters and digits, separated by spaces),
-- so that both databases find the same events: the full-text index only stores and compares them. A word of a keyword is in the
-- title or in a tag; `words` also has those of the description.
CREATE TABLE event_words (
    event_id INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
    title_words TEXT NOT NULL,
    keywords TEXT NOT NULL,
    words TEXT NOT NULL
);
-- The tags of an event in the form in which they are compared.
CREATE TABLE event_tags (
    tag TEXT NOT NULL,
    event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, event_id)
);
CREATE INDEX event_tags_event_id ON event_tags (event_id);

-- This tokenizer changes nothing but ASCII capitals, which no word has, and separates at spaces.
CREATE VIRTUAL TABLE event_search USING fts5(
    title_words, keywords, words,
    content='event_words', content_rowid='event_id', tokenize='ascii', detail='column', columnsize=0, prefix='1 2 3'
);
CREATE TRIGGER event_search_of_new_words AFTER INSERT ON event_words
BEGIN
    INSERT INTO event_search (rowid, title_words, keywords, words)
    VALUES (new.event_id, new.title_words, new.keywords, new.words);
END;
CREATE TRIGGER event_search_of_changed_words AFTER UPDATE ON event_words
BEGIN
    INSERT INTO event_search (event_search, rowid, title_words, keywords, words)
    VALUES ('delete', old.event_id, old.title_words, old.keywords, old.words);
    INSERT INTO event_search (rowid, title_words, keywords, words)
    VALUES (new.event_id, new.title_words, new.keywords, new.words);
END;
CREATE TRIGGER event_search_of_removed_words AFTER DELETE ON event_words
BEGIN
    INSERT INTO event_search (event_search, rowid, title_words, keywords, words)
    VALUES ('delete', old.event_id, old.title_words, old.keywords, old.words);
END;

-- The events whose words are missing or out of date: a server of this version removes an event in the transaction that adds it. A
-- job writes the words of those that remain, because another program or a server of the version before has written the event.
CREATE TABLE event_search_queue (event_id INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE);
CREATE TRIGGER event_search_queue_of_new_events AFTER INSERT ON events
BEGIN
    INSERT OR IGNORE INTO event_search_queue (event_id) VALUES (new.id);
END;
CREATE TRIGGER event_search_queue_of_changed_events AFTER UPDATE OF title, description, tags ON events
WHEN old.title <> new.title OR old.description <> new.description OR old.tags <> new.tags
BEGIN
    INSERT OR IGNORE INTO event_search_queue (event_id) VALUES (new.id);
END;
INSERT INTO event_search_queue (event_id) SELECT id FROM events;
