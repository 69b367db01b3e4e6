-- Format 12: branches can be moved back, which is an event of its own; processes that share the file know of each other.

-- Who does not know it would take it for damage.
UPDATE format SET min_reader = max(min_reader, 12), min_writer = max(min_writer, 12);

-- The processes that share this file, of those that have claimed something.
CREATE TABLE processes (
    id     BLOB    NOT NULL PRIMARY KEY,   -- 16 random bytes
    beat   INTEGER NOT NULL,               -- grows for as long as the process lives
    locked INTEGER NOT NULL                -- 1: it holds the lock of its file in FILE-processes
) STRICT, WITHOUT ROWID;

-- Exchanges with a provider whose answers are not recorded yet.
CREATE TABLE exchanges (
    owner           TEXT    NOT NULL,
    path_hash       BLOB    NOT NULL,      -- key of the history that the answer follows
    process         BLOB    NOT NULL,
    number          INTEGER NOT NULL,      -- of the mark in its process
    conversation_no INTEGER NOT NULL,
    PRIMARY KEY (owner, path_hash, process, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX exchanges_by_conversation ON exchanges (conversation_no);
