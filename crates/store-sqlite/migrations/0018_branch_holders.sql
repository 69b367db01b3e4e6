-- Format 18: who writes to a branch.

-- The process that holds the branch's newest claim, and when it claimed it; NULL if nobody does.
ALTER TABLE branches ADD COLUMN holder BLOB;   -- 16 bytes
ALTER TABLE branches ADD COLUMN held_ms INTEGER;

-- Who does not know them would work on what another process is working on.
UPDATE format SET min_writer = max(min_writer, 18);
