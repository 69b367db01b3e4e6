-- Format 7: branches can be moved back, which is an event of its own. Who does not know it would take
-- it for damage. No column changes: the statement repeats what holds.

ALTER TABLE contexture.events ALTER COLUMN kind SET NOT NULL;

-- The processes that share this database, of those that have claimed something. They belong to nobody.
CREATE TABLE contexture.processes (
    process         bytea    NOT NULL,     -- 16 random bytes
    beat            bigint   NOT NULL,     -- grows for as long as the process lives
    PRIMARY KEY (process)
) WITH (fillfactor = 50);

-- Exchanges with a provider whose answers are not recorded yet.
CREATE TABLE contexture.exchanges (
    owner           text     COLLATE "C" NOT NULL,
    path_hash       bytea    NOT NULL,     -- key of the history that the answer follows
    process         bytea    NOT NULL,
    number          bigint   NOT NULL,     -- of the mark in its process
    conversation    bytea    NOT NULL,
    PRIMARY KEY (owner, path_hash, process, number)
);
CREATE INDEX exchanges_by_conversation ON contexture.exchanges (conversation);
