//! Previews: a long tool output as its beginning, the lines that report errors, its end, and a link.
//!
//! * `policy` says which outputs are previewed and how large a preview may be, in characters or tokens.
//! * `shorten` makes the preview of a text; `error_lines` finds the lines in its middle that report errors.
//! * `previewer` applies both to an item, by the name of its tool.
//!
//! A preview is a function of the output's text, its hash and the policy, so an output looks the same in every request and
//! never moves a cached prefix. It takes at most the policy's threshold, which is less than what it stands for, so a preview
//! is never previewed again. It is cut between lines where one ends nearby, else between characters as people see them. The
//! tree keeps the original; the link names it by its hash.
//!
//! Nothing is recognised by its text: an output that imitates a preview's marker is text like any other.
//!
//! Not here: finding an output by its link (the engine), reading parts of it (`read_back`), and when older outputs are
//! cleared (the compiler).

mod error_lines;
mod policy;
mod previewer;
mod shorten;

pub use policy::{PreviewPolicy, Previewing, TextSize, ToolPreview};
pub use previewer::{Previewed, Previewer};
pub use shorten::{Preview, PreviewFacts};
