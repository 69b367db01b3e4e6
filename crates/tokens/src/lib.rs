//! Counting tokens of text and media, exactly where a vocabulary is public.
