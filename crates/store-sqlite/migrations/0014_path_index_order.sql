-- Format 14: the index of a conversation's path marks is in the order of its nodes.
--
-- Its rows were in the order of the hashes, which is random: every append to a long conversation wrote pages all over the index.
DROP INDEX path_index_by_conversation;
CREATE INDEX path_index_by_conversation ON path_index (conversation_no, segment, depth);
