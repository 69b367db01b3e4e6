-- Format 5: bytes may be compressed.
--
-- `codec` of nodes, state_values and blobs: 0 as they are, 1 one zstd frame that says how long its
-- content is. Hashes are those of the plain bytes, `blobs.size` is theirs; row_check is taken over the
-- bytes as they stand here. What was stored before stays as it is.

UPDATE format SET min_reader = 5, min_writer = 5;
