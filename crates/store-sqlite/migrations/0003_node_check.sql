-- Format 3: a check over the whole row of a node, quick enough to be made at every read.
--
-- It covers what the hash of the item does not: place, counters, ids, links, times, and that hash
-- itself. NULL: the row was written before, and its item is checked by its hash.

ALTER TABLE nodes ADD COLUMN row_check BLOB;   -- 8 bytes of XXH3; see columns.rs

UPDATE format SET min_reader = 3, min_writer = 3;
