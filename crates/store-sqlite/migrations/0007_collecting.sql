-- Format 7: blobs that nothing names are collected.

-- When a collection found that nothing names it; NULL: none did, or it was stored again since.
ALTER TABLE blobs ADD COLUMN unnamed_ms INTEGER;

-- Who does not know the mark would not take it away from a blob that is stored again.
UPDATE format SET min_writer = max(min_writer, 7);
