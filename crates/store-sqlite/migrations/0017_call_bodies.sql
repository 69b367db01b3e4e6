-- Format 17: the bodies of calls, where they are kept.

-- A difference to what is stored, which the store does not read.
ALTER TABLE calls ADD COLUMN body BLOB;
CREATE INDEX calls_with_body ON calls (owner, id) WHERE body IS NOT NULL;
CREATE INDEX bodies_by_conversation ON calls (conversation_no) WHERE body IS NOT NULL;

-- Who does not know them would redact a message and leave it in them.
UPDATE format SET min_writer = max(min_writer, 17);
