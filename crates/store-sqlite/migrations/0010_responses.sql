-- Format 10: what answers were computed from is kept.

-- Of `inputs`, as of an item; NULL inputs: not recorded, empty ones: redacted.
ALTER TABLE responses ADD COLUMN codec INTEGER NOT NULL DEFAULT 0;

-- Who does not know them would leave them where a redaction takes them.
UPDATE format SET min_writer = max(min_writer, 10);
