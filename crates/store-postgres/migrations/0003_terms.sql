-- Format 3: texts can be searched.

-- The terms of nodes. What this finds is judged against the items, so it holds no positions. A node
-- that is not redacted has a row, even if it says nothing.
CREATE TABLE contexture.terms (
    conversation    bytea    NOT NULL,
    segment         integer  NOT NULL,
    depth           integer  NOT NULL,
    rule            integer  NOT NULL,     -- the version of the rule that made them
    -- Of the node, to choose by before it is read.
    created_ms      bigint   NOT NULL,
    kind            smallint NOT NULL,
    audience        smallint NOT NULL,
    -- And two for its conversation and its owner, so that a search costs what these have written
    -- and not what everybody has.
    terms           tsvector NOT NULL,
    PRIMARY KEY (conversation, segment, depth)
);

-- What was added last is a list that every search reads, so it is kept short.
CREATE INDEX terms_by_term ON contexture.terms USING gin (terms) WITH (gin_pending_list_limit = 1024);

-- The version of the rule by which all nodes of the conversation have their terms; 0: some have none.
ALTER TABLE contexture.listings ADD COLUMN terms_version integer NOT NULL DEFAULT 0;

-- Those to be indexed before they can be searched; another version makes this index anew.
CREATE INDEX listings_behind ON contexture.listings (owner, id) WHERE terms_version <> 1;
