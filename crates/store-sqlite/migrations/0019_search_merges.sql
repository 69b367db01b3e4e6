-- Format 19: the index of texts has stems in the place of words, and fewer segments.
--
-- Terms of the new rule are made behind the requests (`terms_version` of `search_state`).

-- Two segments of a level are merged, not four: each segment repeats the words that it has, so an index of many segments
-- is larger and slower.
INSERT INTO search (search, rank) VALUES ('automerge', 2);

-- Who does not know the rule would store texts that nobody finds.
UPDATE format SET min_writer = max(min_writer, 19);
