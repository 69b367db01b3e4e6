//! The vocabulary, read and written.

mod items;
