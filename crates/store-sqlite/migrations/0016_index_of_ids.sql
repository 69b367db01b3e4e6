-- Format 16: the index of ids holds their ends and their beginnings.
--
-- The ids that one operation stores end in numbers that follow each other. In the index by their beginnings alone, which are
-- random, every append to a long conversation wrote pages all over it.
DROP INDEX nodes_by_id;
CREATE INDEX nodes_by_id ON nodes (id >> 32, substr(node_id, 13, 4), substr(node_id, 1, 4));
