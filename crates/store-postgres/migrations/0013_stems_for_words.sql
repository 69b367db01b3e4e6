-- Format 13: the terms of texts have stems in the place of words.

-- Those to be indexed before they can be searched; another version makes this index anew.
DROP INDEX contexture.listings_behind;

CREATE INDEX listings_behind ON contexture.listings (owner, id) WHERE terms_version <> 3;
