-- Format 6: the logs of running answers.
--
-- The tables that the first format set aside for them were never filled.

DROP TABLE stream_chunks;
DROP TABLE streams;

-- Epochs are numbers of the conversation and never given twice.
ALTER TABLE conversations ADD COLUMN next_epoch INTEGER NOT NULL DEFAULT 1;

-- A few rows a conversation, so that no other index is needed.
CREATE TABLE streams (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | epoch, from 1
    stream          BLOB    NOT NULL,      -- unique within the conversation
    status          INTEGER NOT NULL,      -- 0 running, 1 completed, 2 failed, 3 cancelled
    cancel          INTEGER NOT NULL,      -- 1: somebody asked the writer to stop
    -- Chunks [first_chunk, next_chunk) are kept, so many bytes together.
    first_chunk     INTEGER NOT NULL,
    next_chunk      INTEGER NOT NULL,
    bytes           INTEGER NOT NULL,
    opened_ms       INTEGER NOT NULL,
    updated_ms      INTEGER NOT NULL,
    message         TEXT                   -- why it failed
) STRICT;

CREATE TABLE stream_chunks (
    conversation_no INTEGER NOT NULL,
    epoch           INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    chunk_check     BLOB    NOT NULL,      -- 8 bytes of XXH3 over the chunk, seeded by its place
    chunk           BLOB    NOT NULL,
    PRIMARY KEY (conversation_no, epoch, seq)
) STRICT, WITHOUT ROWID;

-- Who does not know them would keep them when something is redacted.
UPDATE format SET min_reader = max(min_reader, 6), min_writer = 6;
