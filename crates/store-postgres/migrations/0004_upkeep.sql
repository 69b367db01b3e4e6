-- Format 4: blobs that nothing names are collected; places for what comes later.

-- When a collection found that nothing names it; null: none did, or it was stored again since.
-- Who does not know the mark would not take it away from a blob that is stored again.
ALTER TABLE contexture.blobs ADD COLUMN unnamed_ms bigint;

-- What follows is filled by later versions of the program; the shapes are fixed now.

CREATE TABLE contexture.responses (
    conversation    bytea    NOT NULL,
    response_id     bytea    NOT NULL,
    run             bytea,
    step            integer,
    base_node       bytea,                 -- the head the payload was compiled from
    status          smallint NOT NULL,
    model           bytea,
    trace_id        bytea,
    plan_hash       bytea,
    inputs          bytea,                 -- what the compile was given
    usage           bytea,
    started_ms      bigint,
    finished_ms     bigint,
    PRIMARY KEY (conversation, response_id)
);

CREATE TABLE contexture.runs (
    conversation    bytea    NOT NULL,
    run             bytea    NOT NULL,
    parent_run      bytea,
    branch          integer,
    status          smallint NOT NULL,
    name            bytea,
    body            bytea,
    started_ms      bigint,
    finished_ms     bigint,
    PRIMARY KEY (conversation, run)
);

-- Derived and rebuildable: which positions a client's history may stand for. Looked up in all of an
-- owner, so it is keyed by the owner, as `listings` is.
CREATE TABLE contexture.path_index (
    owner           text     COLLATE "C" NOT NULL,
    version         integer  NOT NULL,
    path_hash       bytea    NOT NULL,
    conversation    bytea    NOT NULL,
    segment         integer  NOT NULL,
    depth           integer  NOT NULL,
    PRIMARY KEY (owner, version, path_hash, conversation, segment, depth)
);

CREATE INDEX path_index_by_conversation ON contexture.path_index (conversation);
