//! The `contexture` command.

fn main() {}
