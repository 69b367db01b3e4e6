-- Format 4: texts can be searched.

-- The terms of nodes, by the nodes' keys. Without the text (`content=''`) and without positions
-- (`detail=none`): what this finds is judged against the item. Terms come folded and separated by
-- spaces; the tokenizer only splits them again.
CREATE VIRTUAL TABLE search USING fts5 (
    terms, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '+#'"
);
-- Removed terms are merged away by ourselves, once: with FTS5's own rule, segments are merged at
-- every tenth of them that is removed, and each row that a trigger removes may be one.
INSERT INTO search (search, rank) VALUES ('deletemerge', 0);

-- The state of the index, one row.
CREATE TABLE search_state (
    terms_version   INTEGER NOT NULL,      -- of the rule by which terms were made; 0: none were
    indexed_to      INTEGER NOT NULL,      -- nodes with larger keys are still to be indexed
    purge           INTEGER NOT NULL       -- 0, or terms were removed and are to be merged away: 1 due, 2 begun
) STRICT;
INSERT INTO search_state VALUES (0, -1, 0);

-- Whatever removes a node or what it says, removes its terms.
CREATE TRIGGER search_deleted AFTER DELETE ON nodes BEGIN
    DELETE FROM search WHERE rowid = old.id;
    UPDATE search_state SET purge = 1 WHERE purge <> 1;
END;
CREATE TRIGGER search_redacted AFTER UPDATE OF redacted_ms ON nodes BEGIN
    DELETE FROM search WHERE rowid = old.id;
    UPDATE search_state SET purge = 1 WHERE purge <> 1;
END;

-- Who does not know the index would store nodes that nobody finds.
UPDATE format SET min_writer = 4;
