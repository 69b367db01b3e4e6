-- Format 11: lists of values step over none that were deleted, whose rows stay for their versions.

CREATE INDEX key_values_live ON key_values (owner, scope_kind, scope, key) WHERE value IS NOT NULL;
