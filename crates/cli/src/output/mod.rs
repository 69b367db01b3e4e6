//! What the command writes: results on standard output, everything else on standard error, and how both look.
//!
//! A *failure* is an error in the words of the command line: its exit code, what it is about, and a hint. Text from
//! outside is made safe for a terminal before it is shown. Not here: what a command shows; each command decides that.

pub(crate) mod error_messages;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod printable;
pub(crate) mod relative_time;
pub(crate) mod shell_command;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod write;
