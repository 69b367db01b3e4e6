-- Format 2: branches are renamed, nodes redacted, conversations found by their metadata and
-- deleted in steps.

-- The second name of an event that has two.
ALTER TABLE events ADD COLUMN other TEXT;

-- When the item was replaced by its tombstone; NULL: it was not.
ALTER TABLE nodes ADD COLUMN redacted_ms INTEGER;

-- What a redaction follows: copies and compactions.
CREATE INDEX nodes_by_source ON nodes (id >> 32, copied_from) WHERE copied_from IS NOT NULL;
CREATE INDEX nodes_compactions ON nodes (id) WHERE kind = 6;

-- The metadata fields that can be asked for. `metadata` stays what is shown; this follows it.
CREATE TABLE attributes (
    conversation_no INTEGER NOT NULL,
    key             TEXT    NOT NULL,
    kind            INTEGER NOT NULL,      -- 0 null, 1 bool, 2 number, 3 text, 4 anything else
    value           ANY,                   -- NULL for kinds 0 and 4
    PRIMARY KEY (conversation_no, key)
) STRICT, WITHOUT ROWID;

-- Conversations that are gone for everybody and whose rows are being removed.
CREATE TABLE deletions (
    conversation_no INTEGER PRIMARY KEY,
    owner           TEXT    NOT NULL,
    id              TEXT    NOT NULL
) STRICT;
CREATE INDEX deletions_by_id ON deletions (owner, id);

UPDATE format SET min_reader = 2, min_writer = 2;
