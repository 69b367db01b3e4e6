//! Previews: a long tool output as its beginning, the lines that report errors, its end, and a link.
//!
//! * `policy` says which outputs are previewed and how large a preview may be, in characters, bytes or tokens.
//! * `shorten` builds the preview of a text; `error_lines` finds the lines in its middle that report errors.
//! * `previewer` applies both to an item, by the name of its tool.
//!
//! A preview is a function of the output's text, its hash and the policy, so an output looks the same in every request
//! and never changes a cached prefix. It is at most as large as the policy's threshold, so a preview is never previewed
//! again. It is cut between lines where one ends nearby, otherwise between grapheme clusters. The tree keeps the
//! original; the link contains its hash.
//!
//! Nothing is recognised by its text: an output that imitates a preview's marker is treated as text.
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
