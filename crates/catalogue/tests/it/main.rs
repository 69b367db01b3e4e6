//! Tests of the public interface.

mod merging;
mod prices;
mod resolution;
mod table;
