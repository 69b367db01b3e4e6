//! Reading what is not in view: a part of a long text, the lines of it that match, and which of many texts says
//! something.
//!
//! The other half of previews, clearing and compaction: whatever they leave out of a payload can be found again by a
//! word and read by its link. Everything here is a function of texts; answers are bounded, so that reading a long
//! output does not give a long output.
//!
//! Not here: which texts there are, and whose (the engine).

mod answer;
mod excerpt;
mod find;
mod rank;
mod tool;

pub use answer::{Answer, Hit, answer_excerpt, answer_found, answer_hits};
pub use excerpt::{Excerpt, Position, excerpt};
pub use find::{Find, Found, FoundLine, Matcher, Pattern, PatternError, find};
pub use rank::{Needle, Ranking, Relevance};
pub(crate) use tool::offers;
pub use tool::{READ_TOOL, ReadCall, ReadCallError, read_tool};
