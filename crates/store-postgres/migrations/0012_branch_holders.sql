-- Format 12: who writes to a branch.

-- The process that holds the branch's newest claim, and when it claimed it; NULL if nobody does.
ALTER TABLE contexture.branches ADD COLUMN holder bytea;
ALTER TABLE contexture.branches ADD COLUMN held_ms bigint;
