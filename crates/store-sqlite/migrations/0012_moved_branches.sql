-- Format 12: branches can be moved back, which is an event of its own.

-- Who does not know it would take it for damage.
UPDATE format SET min_reader = max(min_reader, 12), min_writer = max(min_writer, 12);
