-- Format 11: the bodies of calls, where they are kept.

-- A difference to what is stored, which the store does not read.
ALTER TABLE contexture.calls ADD COLUMN body bytea;
CREATE INDEX calls_with_body ON contexture.calls (owner, call) WHERE body IS NOT NULL;
CREATE INDEX bodies_by_conversation ON contexture.calls (conversation) WHERE body IS NOT NULL;
