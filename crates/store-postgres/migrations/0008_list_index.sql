-- Format 8: lists filtered by title or metadata use an index.

-- Of the conversation: an index serves one owner's lists.
ALTER TABLE contexture.attributes ADD COLUMN owner text COLLATE "C";

UPDATE contexture.attributes a SET owner = c.owner FROM contexture.conversations c
    WHERE c.conversation = a.conversation;

-- Of a long text the beginning, since the rows of an index are small.
CREATE INDEX attributes_by_value ON contexture.attributes (owner, key, kind, number, left(words, 64));

-- The terms of the title and one of the owner; null with a title: still to be made, which a migration does at its end.
ALTER TABLE contexture.details ADD COLUMN title_terms tsvector;

-- What was added last is a list that every look-up reads, so it is kept short.
CREATE INDEX details_by_title ON contexture.details USING gin (title_terms) WITH (gin_pending_list_limit = 256);

CREATE INDEX details_behind ON contexture.details (conversation)
    WHERE title IS NOT NULL AND title_terms IS NULL;
