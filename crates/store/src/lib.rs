//! The conversation store: its contract, its functions, an in-memory backend.
