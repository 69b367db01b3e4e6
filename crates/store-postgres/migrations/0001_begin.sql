-- Format 1.
--
-- Each statement runs in a transaction of its own, together with the note that it has run: so an
-- interrupted migration goes on where it stopped, and processes that migrate at once take turns.
--
-- Every key begins with the conversation, and nothing else orders or connects rows: a server that
-- spreads rows over machines by their first column keeps each conversation on one. There are no
-- sequences, triggers or foreign keys; positions come from the rows of conversation and branch.
--
-- Names have rules that keep out what a text column cannot hold, and compare byte by byte. Free
-- text is bytea, because it may hold a zero byte.

CREATE TABLE contexture.conversations (
    -- 16 bytes of BLAKE3 over owner and id; see conv.rs.
    conversation    bytea    NOT NULL,
    owner           text     COLLATE "C" NOT NULL,
    id              text     COLLATE "C" NOT NULL,
    version         integer  NOT NULL,
    active_branch   integer  NOT NULL,
    -- Counts, so that nothing has to be counted.
    nodes           integer  NOT NULL,
    branches        integer  NOT NULL,
    -- The next free numbers.
    next_segment    integer  NOT NULL,
    next_branch     integer  NOT NULL,
    next_root       integer  NOT NULL,
    next_event      integer  NOT NULL,
    -- Grows with each write: the row that makes writes to one conversation follow each other.
    writes          bigint   NOT NULL,
    created_ms      bigint   NOT NULL,
    updated_ms      bigint   NOT NULL,
    PRIMARY KEY (conversation)
) WITH (fillfactor = 50);

-- What people say of a conversation. Apart from `conversations`, whose rows are written with every
-- append.
CREATE TABLE contexture.details (
    conversation    bytea    NOT NULL,
    title           bytea,
    resource        bytea,
    metadata        bytea    NOT NULL,     -- a JSON object
    PRIMARY KEY (conversation)
);

-- The metadata fields that can be asked for. `details` stays what is shown; this follows it.
CREATE TABLE contexture.attributes (
    conversation    bytea    NOT NULL,
    key             text     COLLATE "C" NOT NULL,
    kind            smallint NOT NULL,     -- 0 null, 1 bool, 2 number, 3 text, 4 anything else
    number          double precision,      -- of kind 2, and of kind 1: 0 or 1
    words           text     COLLATE "C",  -- of kind 3
    PRIMARY KEY (conversation, key)
);

-- An owner's conversations in order of time. Keyed by owner, so it may live elsewhere than the
-- conversations; it could be made again from them.
CREATE TABLE contexture.listings (
    owner           text     COLLATE "C" NOT NULL,
    id              text     COLLATE "C" NOT NULL,
    conversation    bytea    NOT NULL,
    resource        bytea,
    updated_ms      bigint   NOT NULL,
    PRIMARY KEY (owner, id)
) WITH (fillfactor = 70);

CREATE INDEX listings_by_time ON contexture.listings (owner, updated_ms DESC, id);

CREATE INDEX listings_by_resource ON contexture.listings (owner, resource, updated_ms DESC, id)
    WHERE resource IS NOT NULL;

-- Conversations that are gone for everybody and whose rows are being removed.
CREATE TABLE contexture.deletions (
    owner           text     COLLATE "C" NOT NULL,
    id              text     COLLATE "C" NOT NULL,
    conversation    bytea    NOT NULL,
    PRIMARY KEY (owner, id)
);

-- A run of nodes without a fork: depths first_depth, first_depth + 1, … It follows, on its path,
-- the node at (ancestors[1], upto[1]).
CREATE TABLE contexture.segments (
    conversation    bytea    NOT NULL,
    segment         integer  NOT NULL,     -- from 1
    first_depth     integer  NOT NULL,
    branch          integer  NOT NULL,     -- the one branch that may extend it
    -- The segments the path runs through before it, nearest first, and the depth at which it leaves
    -- each; at most 64, the rest is found at the last of them. Numbers only fall, so a walk ends.
    ancestors       integer[] NOT NULL,
    upto            integer[] NOT NULL,
    PRIMARY KEY (conversation, segment)
);

CREATE TABLE contexture.nodes (
    conversation    bytea    NOT NULL,
    segment         integer  NOT NULL,
    depth           integer  NOT NULL,     -- 1 for the first node of a path
    messages        integer  NOT NULL,     -- counters of the path up to here
    turns           integer  NOT NULL,
    compacted       integer  NOT NULL,     -- depth of the newest compaction, 0: none
    root_no         integer  NOT NULL,     -- state; 0: empty
    step            integer,
    created_ms      bigint   NOT NULL,
    fence           bigint,
    kind            smallint NOT NULL,
    origin          smallint NOT NULL,
    audience        smallint NOT NULL,     -- bit 0 model, bit 1 user
    item_version    smallint NOT NULL,     -- of the item's shape
    codec           smallint NOT NULL,     -- of the item's bytes; 0: as they are
    key_id          integer,               -- of the key that encrypts them; null: none
    node_id         bytea    NOT NULL,
    content_hash    bytea    NOT NULL,     -- 16 bytes of BLAKE3 over the item's JSON
    meaning_hash    bytea,
    answers         bytea,                 -- node id of the call
    copied_from     bytea,                 -- node id
    run             bytea,
    response        bytea,
    message_id      text     COLLATE "C",  -- null: a message of its own
    redacted_ms     bigint,                -- when the item was replaced by its tombstone
    item            bytea    NOT NULL,
    PRIMARY KEY (conversation, segment, depth)
);

CREATE UNIQUE INDEX nodes_by_id ON contexture.nodes (conversation, node_id);

CREATE INDEX nodes_by_message ON contexture.nodes (conversation, message_id, segment, depth)
    WHERE message_id IS NOT NULL;

-- What a redaction follows: copies and compactions.
CREATE INDEX nodes_by_source ON contexture.nodes (conversation, copied_from)
    WHERE copied_from IS NOT NULL;

CREATE INDEX nodes_compactions ON contexture.nodes (conversation) WHERE kind = 6;

CREATE TABLE contexture.branches (
    conversation    bytea    NOT NULL,
    branch          integer  NOT NULL,     -- from 1
    name            text     COLLATE "C" NOT NULL,
    -- The head and its counters; all 0 on an empty branch.
    head_segment    integer  NOT NULL,
    head_depth      integer  NOT NULL,
    head_node       bytea,
    messages        integer  NOT NULL,
    turns           integer  NOT NULL,
    compacted       integer  NOT NULL,
    root_no         integer  NOT NULL,
    segment         integer  NOT NULL,     -- the segment this branch may extend; 0: none yet
    fence           bigint   NOT NULL,
    created_ms      bigint   NOT NULL,
    PRIMARY KEY (conversation, branch)
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX branches_by_name ON contexture.branches (conversation, name);

CREATE TABLE contexture.checkpoints (
    conversation    bytea    NOT NULL,
    name            text     COLLATE "C" NOT NULL,
    node_id         bytea    NOT NULL,
    at_ms           bigint   NOT NULL,
    PRIMARY KEY (conversation, name)
);

-- State roots, whole or as the difference from an earlier one.
CREATE TABLE contexture.roots (
    conversation    bytea    NOT NULL,
    root_no         integer  NOT NULL,     -- from 1
    whole_no        integer  NOT NULL,     -- the whole root that the differences lead back to
    base            integer,               -- the earlier root; null: this one is whole
    since_whole     integer  NOT NULL,     -- bytes of differences since the whole root
    body_check      bytea    NOT NULL,     -- 8 bytes of BLAKE3 over the body
    body            bytea    NOT NULL,
    PRIMARY KEY (conversation, root_no)
);

CREATE TABLE contexture.state_values (
    conversation    bytea    NOT NULL,
    hash            bytea    NOT NULL,     -- 16 bytes of BLAKE3 over the value
    codec           smallint NOT NULL,
    key_id          integer,
    value           bytea,                 -- null: redacted
    PRIMARY KEY (conversation, hash)
);

CREATE TABLE contexture.blobs (
    conversation    bytea    NOT NULL,
    blob_id         bytea    NOT NULL,     -- 16 bytes of BLAKE3, keyed by the owner
    codec           smallint NOT NULL,
    key_id          integer,
    bytes           bytea    NOT NULL,
    PRIMARY KEY (conversation, blob_id)
);

CREATE TABLE contexture.key_values (
    owner           text     COLLATE "C" NOT NULL,
    scope_kind      smallint NOT NULL,     -- 0 owner, 1 resource, 2 conversation
    scope           bytea    NOT NULL,
    key             bytea    NOT NULL,
    version         bigint   NOT NULL,     -- stays when the value is deleted
    at_ms           bigint   NOT NULL,
    value_check     bytea,                 -- 8 bytes of BLAKE3 over the value
    value           bytea,                 -- null: deleted
    PRIMARY KEY (owner, scope_kind, scope, key)
);

CREATE TABLE contexture.events (
    conversation    bytea    NOT NULL,
    event           integer  NOT NULL,     -- from 1
    at_ms           bigint   NOT NULL,
    kind            smallint NOT NULL,
    name            text     COLLATE "C",
    other           text     COLLATE "C",  -- the second name of an event that has two
    node            bytea,
    number          bigint,
    PRIMARY KEY (conversation, event)
);
