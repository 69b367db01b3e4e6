-- Format 7: branches can be moved back, which is an event of its own. Who does not know it would take
-- it for damage. No column changes: the statement repeats what holds.

ALTER TABLE contexture.events ALTER COLUMN kind SET NOT NULL;
