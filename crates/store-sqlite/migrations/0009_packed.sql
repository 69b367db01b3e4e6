-- Format 9: the columns of a node that nobody asks for are packed into one, and the index of ids holds
-- the beginnings of ids.

DROP TRIGGER search_deleted;
DROP TRIGGER search_redacted;
DROP INDEX nodes_by_id;
DROP INDEX nodes_by_message;
DROP INDEX nodes_by_source;
DROP INDEX nodes_compactions;
ALTER TABLE nodes RENAME TO nodes_8;

CREATE TABLE nodes (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | seq
    kind            INTEGER NOT NULL,
    codec           INTEGER NOT NULL,      -- of the item's bytes; 0: as they are
    redacted_ms     INTEGER,               -- when the item was replaced by its tombstone
    node_id         BLOB    NOT NULL,
    copied_from     BLOB,                  -- node id
    message_id      TEXT,                  -- NULL: a message of its own
    -- Segment, depth, messages, turns, compacted, origin, audience, root_no, fence, created_ms,
    -- item_version, key_id, step, content_hash, meaning_hash, answers, run, response, row_check:
    -- see columns.rs.
    rest            BLOB    NOT NULL,
    item            BLOB    NOT NULL
) STRICT;
-- Ids are hashes, so four bytes tell nearly all of a conversation's apart.
CREATE INDEX nodes_by_id ON nodes (id >> 32, substr(node_id, 1, 4));
CREATE INDEX nodes_by_message ON nodes (id >> 32, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX nodes_by_source ON nodes (id >> 32, copied_from) WHERE copied_from IS NOT NULL;
CREATE INDEX nodes_compactions ON nodes (id) WHERE kind = 6;

CREATE TRIGGER search_deleted AFTER DELETE ON nodes BEGIN
    DELETE FROM search WHERE rowid =
        iif((old.id & 0xffffffff) < 1024, (old.id >> 32) << 10 | (old.id & 0xffffffff), old.id + (1 << 41));
    UPDATE search_state SET purge = 1 WHERE purge <> 1;
END;
CREATE TRIGGER search_redacted AFTER UPDATE OF redacted_ms ON nodes BEGIN
    DELETE FROM search WHERE rowid =
        iif((old.id & 0xffffffff) < 1024, (old.id >> 32) << 10 | (old.id & 0xffffffff), old.id + (1 << 41));
    UPDATE search_state SET purge = 1 WHERE purge <> 1;
END;

UPDATE format SET min_reader = max(min_reader, 9), min_writer = max(min_writer, 9);
-- The rows follow (`columns::repack`), and nodes_8 goes.
