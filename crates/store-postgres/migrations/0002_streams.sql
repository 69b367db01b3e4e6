-- Format 2: the logs of running answers.

-- Epochs are numbers of the conversation and never given twice.
ALTER TABLE contexture.conversations ADD COLUMN next_epoch integer NOT NULL DEFAULT 1;

-- Opened again, a stream keeps its row: so its writers wait for each other there.
CREATE TABLE contexture.streams (
    conversation    bytea    NOT NULL,
    stream          bytea    NOT NULL,
    epoch           integer  NOT NULL,     -- from 1
    status          smallint NOT NULL,     -- 0 running, 1 completed, 2 failed, 3 cancelled
    cancel          boolean  NOT NULL,     -- somebody asked the writer to stop
    -- Chunks [first_chunk, next_chunk) are kept, so many bytes together.
    first_chunk     bigint   NOT NULL,
    next_chunk      bigint   NOT NULL,
    size            bigint   NOT NULL,
    opened_ms       bigint   NOT NULL,
    updated_ms      bigint   NOT NULL,
    message         bytea,                 -- why it failed
    PRIMARY KEY (conversation, stream)
) WITH (fillfactor = 50);

CREATE TABLE contexture.stream_chunks (
    conversation    bytea    NOT NULL,
    epoch           integer  NOT NULL,
    seq             bigint   NOT NULL,
    chunk_check     bytea    NOT NULL,     -- 8 bytes of BLAKE3 over its number and the chunk
    chunk           bytea    NOT NULL,
    PRIMARY KEY (conversation, epoch, seq)
);
