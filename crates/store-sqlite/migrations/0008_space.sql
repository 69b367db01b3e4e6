-- Format 8: short items are compressed too, and the index of texts is smaller.
--
-- `codec` of nodes, state_values and blobs: 2 is one zstd frame made with the dictionary of that
-- number (`dictionaries/`), which every later version has. What was stored before stays as it is.

-- Nodes have numbers of their own in the index: see entry.rs. It is made again.
INSERT INTO search (search) VALUES ('delete-all');
UPDATE search_state SET terms_version = 0, purge = 0;

DROP TRIGGER search_deleted;
CREATE TRIGGER search_deleted AFTER DELETE ON nodes BEGIN
    DELETE FROM search WHERE rowid =
        iif((old.id & 0xffffffff) < 1024, (old.id >> 32) << 10 | (old.id & 0xffffffff), old.id + (1 << 41));
    UPDATE search_state SET purge = 1 WHERE purge <> 1;
END;
DROP TRIGGER search_redacted;
CREATE TRIGGER search_redacted AFTER UPDATE OF redacted_ms ON nodes BEGIN
    DELETE FROM search WHERE rowid =
        iif((old.id & 0xffffffff) < 1024, (old.id >> 32) << 10 | (old.id & 0xffffffff), old.id + (1 << 41));
    UPDATE search_state SET purge = 1 WHERE purge <> 1;
END;

-- Who does not know them would neither read the items nor find them.
UPDATE format SET min_reader = max(min_reader, 8), min_writer = max(min_writer, 8);
