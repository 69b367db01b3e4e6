-- Format 15: the record of calls, and their sums by the hour.

-- One row for each exchange with a provider. Its time is in its id.
CREATE TABLE calls (
    owner           TEXT    NOT NULL,
    id              BLOB    NOT NULL,      -- 16 bytes, ordered by time (UUID version 7)
    open            INTEGER NOT NULL,      -- 1: in no row of call_sums yet
    outcome         INTEGER NOT NULL,      -- code
    conversation_no INTEGER NOT NULL,      -- 0: none, or deleted
    upstream        TEXT    NOT NULL,
    model           TEXT    NOT NULL,      -- this and the next two: empty for none
    key_name        TEXT    NOT NULL,
    policy          TEXT    NOT NULL,
    response_id     BLOB,
    body_hash       BLOB,
    details         BLOB    NOT NULL,      -- JSON
    band            BLOB,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_open ON calls (owner, id) WHERE open = 1;
CREATE INDEX calls_by_conversation ON calls (conversation_no, id) WHERE conversation_no <> 0;

-- The sums of calls that are alike in all that they are found by, hour by hour. They outlive the calls.
CREATE TABLE call_sums (
    owner                 TEXT    NOT NULL,
    hour                  INTEGER NOT NULL,  -- since 1970
    outcome               INTEGER NOT NULL,
    upstream              TEXT    NOT NULL,
    model                 TEXT    NOT NULL,
    key_name              TEXT    NOT NULL,
    policy                TEXT    NOT NULL,
    conversation_no       INTEGER NOT NULL,
    calls                 INTEGER NOT NULL,
    failed                INTEGER NOT NULL,
    rewritten             INTEGER NOT NULL,
    predicted             INTEGER NOT NULL,
    input_tokens          INTEGER NOT NULL,
    cache_read_tokens     INTEGER NOT NULL,
    cache_written_tokens  INTEGER NOT NULL,
    output_tokens         INTEGER NOT NULL,
    pico_dollars          INTEGER NOT NULL,
    predicted_read_tokens INTEGER NOT NULL,
    sent_tokens           INTEGER NOT NULL,
    passed_tokens         INTEGER NOT NULL,
    sent_pico_dollars     INTEGER NOT NULL,
    passed_pico_dollars   INTEGER NOT NULL,
    PRIMARY KEY (owner, hour, outcome, upstream, model, key_name, policy, conversation_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_sums_by_conversation ON call_sums (conversation_no) WHERE conversation_no <> 0;

-- Who does not know them would delete conversations and owners without their calls.
UPDATE format SET min_writer = max(min_writer, 15);
