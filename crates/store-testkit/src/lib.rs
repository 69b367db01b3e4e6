//! The behaviours every conversation store must show, as one table.
