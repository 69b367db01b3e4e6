-- Format 1.
--
-- Rows that belong to one conversation have the key `conversation_no << 32 | number`, so that each
-- table is clustered by conversation and everything of one conversation is one range of keys.
-- Where a key cannot have that form, it begins with the conversation.

CREATE TABLE format (
    -- Versions of this program before these may not read, or not write, this database.
    min_reader INTEGER NOT NULL,
    min_writer INTEGER NOT NULL
) STRICT;
INSERT INTO format VALUES (1, 1);

CREATE TABLE conversations (
    -- Below 2^31, never used again after a deletion.
    no              INTEGER PRIMARY KEY AUTOINCREMENT,
    owner           TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    resource        TEXT,
    title           TEXT,
    version         INTEGER NOT NULL,
    active_branch   INTEGER NOT NULL,
    -- Counts, so that nothing has to be counted.
    nodes           INTEGER NOT NULL,
    branches        INTEGER NOT NULL,
    -- The next free numbers. Positions are handed out to segments in runs, so `next_seq` runs ahead.
    next_seq        INTEGER NOT NULL,
    next_segment    INTEGER NOT NULL,
    next_branch     INTEGER NOT NULL,
    next_root       INTEGER NOT NULL,
    next_event      INTEGER NOT NULL,
    created_ms      INTEGER NOT NULL,
    updated_ms      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX conversations_by_id ON conversations (owner, id);
CREATE INDEX conversations_by_time ON conversations (owner, updated_ms DESC, id);
CREATE INDEX conversations_by_resource ON conversations (owner, resource, updated_ms DESC, id)
    WHERE resource IS NOT NULL;

-- Apart from `conversations`, whose rows are rewritten with every append.
CREATE TABLE metadata (
    conversation_no INTEGER PRIMARY KEY,
    -- A JSON object, as text.
    metadata        BLOB    NOT NULL
) STRICT;

-- A run of nodes without a fork: depths first_depth, first_depth + 1, … at the keys first_seq,
-- first_seq + 1, …, at most `capacity` of them. It follows, on its path, the node at
-- (parent_segment, first_depth - 1).
CREATE TABLE segments (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | segment, from 1
    parent_segment  INTEGER NOT NULL,      -- always a smaller number; 0: none
    first_depth     INTEGER NOT NULL,
    first_seq       INTEGER NOT NULL,
    capacity        INTEGER NOT NULL,
    branch          INTEGER NOT NULL       -- the one branch that may extend it
) STRICT;

CREATE TABLE nodes (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | seq
    segment         INTEGER NOT NULL,
    depth           INTEGER NOT NULL,      -- 1 for the first node of a path
    messages        INTEGER NOT NULL,      -- counters of the path up to here
    turns           INTEGER NOT NULL,
    compacted       INTEGER NOT NULL,      -- depth of the newest compaction, 0: none
    kind            INTEGER NOT NULL,
    origin          INTEGER NOT NULL,
    audience        INTEGER NOT NULL,      -- bit 0 model, bit 1 user
    root_no         INTEGER NOT NULL,      -- state; 0: empty
    fence           INTEGER,
    created_ms      INTEGER NOT NULL,
    item_version    INTEGER NOT NULL,      -- of the item's shape
    codec           INTEGER NOT NULL,      -- of the item's bytes; 0: as they are
    key_id          INTEGER,               -- of the key that encrypts them; NULL: none
    step            INTEGER,
    node_id         BLOB    NOT NULL,
    content_hash    BLOB    NOT NULL,      -- 16 bytes of BLAKE3 over the item's JSON
    meaning_hash    BLOB,
    answers         BLOB,                  -- node id of the call
    copied_from     BLOB,                  -- node id
    run             BLOB,
    response        BLOB,
    message_id      TEXT,                  -- NULL: a message of its own
    item            BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX nodes_by_id ON nodes (id >> 32, node_id);
CREATE INDEX nodes_by_message ON nodes (id >> 32, message_id) WHERE message_id IS NOT NULL;

CREATE TABLE branches (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | branch, from 1
    name            TEXT    NOT NULL,
    -- The head and its counters; all 0 on an empty branch.
    head_segment    INTEGER NOT NULL,
    head_depth      INTEGER NOT NULL,
    head_node       BLOB,
    messages        INTEGER NOT NULL,
    turns           INTEGER NOT NULL,
    compacted       INTEGER NOT NULL,
    root_no         INTEGER NOT NULL,
    -- The segment this branch may extend (0: none yet) and its free positions: [next_seq, end_seq).
    segment         INTEGER NOT NULL,
    next_seq        INTEGER NOT NULL,
    end_seq         INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    created_ms      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX branches_by_name ON branches (id >> 32, name);

CREATE TABLE checkpoints (
    conversation_no INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    node_id         BLOB    NOT NULL,
    at_ms           INTEGER NOT NULL,
    PRIMARY KEY (conversation_no, name)
) STRICT, WITHOUT ROWID;

-- State roots, whole or as the difference from an earlier one.
CREATE TABLE roots (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | root, from 1
    base            INTEGER,               -- the earlier root; NULL: this one is whole
    since_whole     INTEGER NOT NULL,      -- bytes of differences since the last whole root
    body_check      BLOB    NOT NULL,      -- 8 bytes of BLAKE3 over the body
    body            BLOB    NOT NULL
) STRICT;

CREATE TABLE state_values (
    conversation_no INTEGER NOT NULL,
    hash            BLOB    NOT NULL,      -- 16 bytes of BLAKE3 over the value
    codec           INTEGER NOT NULL,
    key_id          INTEGER,
    value           BLOB,                  -- up to 4 KiB
    blob_id         BLOB,                  -- otherwise here
    PRIMARY KEY (conversation_no, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    no              INTEGER PRIMARY KEY,
    conversation_no INTEGER NOT NULL,
    blob_id         BLOB    NOT NULL,      -- 16 bytes of BLAKE3, keyed by the owner
    codec           INTEGER NOT NULL,
    key_id          INTEGER,
    size            INTEGER NOT NULL,
    bytes           BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX blobs_by_id ON blobs (conversation_no, blob_id);

CREATE TABLE key_values (
    no              INTEGER PRIMARY KEY,
    owner           TEXT    NOT NULL,
    scope_kind      INTEGER NOT NULL,      -- 0 owner, 1 resource, 2 conversation
    scope           TEXT    NOT NULL,
    key             TEXT    NOT NULL,
    version         INTEGER NOT NULL,      -- stays when the value is deleted
    at_ms           INTEGER NOT NULL,
    value_check     BLOB,                  -- 8 bytes of BLAKE3 over the value
    value           BLOB                   -- NULL: deleted
) STRICT;
CREATE UNIQUE INDEX key_values_by_key ON key_values (owner, scope_kind, scope, key);

CREATE TABLE events (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | event, from 1
    at_ms           INTEGER NOT NULL,
    kind            INTEGER NOT NULL,
    name            TEXT,
    node            BLOB,
    number          INTEGER
) STRICT;

-- What follows is filled by later versions of the program; the shapes are fixed now.

CREATE TABLE responses (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | number, from 1
    response_id     BLOB    NOT NULL,
    run             BLOB,
    step            INTEGER,
    base_node       BLOB,                  -- the head the payload was compiled from
    status          INTEGER NOT NULL,
    model           TEXT,
    trace_id        BLOB,
    plan_hash       BLOB,
    inputs          BLOB,                  -- what the compile was given
    usage           BLOB,
    started_ms      INTEGER,
    finished_ms     INTEGER
) STRICT;
CREATE UNIQUE INDEX responses_by_id ON responses (id >> 32, response_id);

CREATE TABLE runs (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | number, from 1
    run             BLOB    NOT NULL,
    parent_run      BLOB,
    branch          INTEGER,
    status          INTEGER NOT NULL,
    name            TEXT,
    body            BLOB,
    started_ms      INTEGER,
    finished_ms     INTEGER
) STRICT;
CREATE UNIQUE INDEX runs_by_id ON runs (id >> 32, run);

CREATE TABLE streams (
    id              INTEGER PRIMARY KEY,   -- conversation_no << 32 | number, from 1
    stream          BLOB    NOT NULL,
    epoch           INTEGER NOT NULL,
    status          INTEGER NOT NULL,
    next_chunk      INTEGER NOT NULL,
    created_ms      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX streams_by_id ON streams (id >> 32, stream);

CREATE TABLE stream_chunks (
    conversation_no INTEGER NOT NULL,
    stream          INTEGER NOT NULL,
    epoch           INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    chunk           BLOB    NOT NULL,
    PRIMARY KEY (conversation_no, stream, epoch, seq)
) STRICT, WITHOUT ROWID;

-- Derived and rebuildable: which positions a client's history may stand for.
CREATE TABLE path_index (
    owner           TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    path_hash       BLOB    NOT NULL,
    conversation_no INTEGER NOT NULL,
    segment         INTEGER NOT NULL,
    depth           INTEGER NOT NULL,
    PRIMARY KEY (owner, version, path_hash, conversation_no, segment, depth)
) STRICT, WITHOUT ROWID;
CREATE INDEX path_index_by_conversation ON path_index (conversation_no);
