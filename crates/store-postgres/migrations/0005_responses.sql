-- Format 5: what answers were computed from is kept, in `responses`: null inputs were not recorded,
-- empty ones are redacted. Who does not know them would leave them where a redaction takes them.

ALTER TABLE contexture.responses ALTER COLUMN inputs SET STORAGE EXTENDED;
