-- Format 9: the record of calls, and their sums by the hour.

-- One row for each exchange with a provider. Its time is in its id.
CREATE TABLE contexture.calls (
    owner           text     COLLATE "C" NOT NULL,
    call            bytea    NOT NULL,     -- 16 bytes, ordered by time (UUID version 7)
    open            boolean  NOT NULL,     -- in no row of call_sums yet
    outcome         smallint NOT NULL,     -- code
    conversation    bytea    NOT NULL,     -- empty: none, or deleted
    upstream        text     COLLATE "C" NOT NULL,
    model           text     COLLATE "C" NOT NULL, -- this and the next two: empty for none
    key_name        text     COLLATE "C" NOT NULL,
    policy          text     COLLATE "C" NOT NULL,
    response_id     bytea,
    body_hash       bytea,
    details         bytea    NOT NULL,     -- JSON
    band            bytea,
    PRIMARY KEY (owner, call)
);
CREATE INDEX calls_open ON contexture.calls (owner, call) WHERE open;
CREATE INDEX calls_by_conversation ON contexture.calls (conversation, call) WHERE conversation <> '\x';

-- The sums of calls that are alike in all that they are found by, hour by hour. They outlive the calls.
CREATE TABLE contexture.call_sums (
    owner                 text     COLLATE "C" NOT NULL,
    hour                  bigint   NOT NULL,   -- since 1970
    outcome               smallint NOT NULL,
    upstream              text     COLLATE "C" NOT NULL,
    model                 text     COLLATE "C" NOT NULL,
    key_name              text     COLLATE "C" NOT NULL,
    policy                text     COLLATE "C" NOT NULL,
    conversation          bytea    NOT NULL,
    calls                 bigint   NOT NULL,
    failed                bigint   NOT NULL,
    rewritten             bigint   NOT NULL,
    predicted             bigint   NOT NULL,
    input_tokens          bigint   NOT NULL,
    cache_read_tokens     bigint   NOT NULL,
    cache_written_tokens  bigint   NOT NULL,
    output_tokens         bigint   NOT NULL,
    pico_dollars          bigint   NOT NULL,
    predicted_read_tokens bigint   NOT NULL,
    sent_tokens           bigint   NOT NULL,
    passed_tokens         bigint   NOT NULL,
    sent_pico_dollars     bigint   NOT NULL,
    passed_pico_dollars   bigint   NOT NULL,
    PRIMARY KEY (owner, hour, outcome, upstream, model, key_name, policy, conversation)
);
CREATE INDEX call_sums_by_conversation ON contexture.call_sums (conversation) WHERE conversation <> '\x';
