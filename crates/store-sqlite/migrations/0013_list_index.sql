-- Format 13: lists filtered by title or metadata use an index.

-- The fields that filters test, again, with the owner, whose lists alone an index serves. Filled from `metadata`.
DROP TABLE attributes;
CREATE TABLE attributes (
    conversation_no INTEGER NOT NULL,
    key             TEXT    NOT NULL,
    kind            INTEGER NOT NULL,      -- 0 null, 1 bool, 2 number, 3 text, 4 anything else
    value           ANY,                   -- NULL for kinds 0 and 4
    owner           TEXT    NOT NULL,
    PRIMARY KEY (conversation_no, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX attributes_by_value ON attributes (owner, key, kind, value);

-- The terms of titles, by the numbers of their conversations, in the same way as those of nodes. Filled from
-- `conversations`.
CREATE VIRTUAL TABLE search_titles USING fts5 (
    terms, content='', contentless_delete=1, detail=none, tokenize="ascii"
);
INSERT INTO search_titles (search_titles, rank) VALUES ('deletemerge', 0);

-- As `purge`, of this index.
ALTER TABLE search_state ADD COLUMN purge_titles INTEGER NOT NULL DEFAULT 0;

-- Whatever removes a title, removes its terms.
CREATE TRIGGER titles_deleted AFTER DELETE ON conversations WHEN old.title IS NOT NULL BEGIN
    DELETE FROM search_titles WHERE rowid = old.no;
    UPDATE search_state SET purge_titles = 1;
END;
CREATE TRIGGER titles_changed AFTER UPDATE OF title ON conversations WHEN old.title IS NOT NULL BEGIN
    DELETE FROM search_titles WHERE rowid = old.no;
    UPDATE search_state SET purge_titles = 1;
END;

-- Who does not know them would store titles that nobody finds.
UPDATE format SET min_writer = max(min_writer, 13);
