//! Views of a branch: its path folded to messages, a transcript, a session to export, an item behind a link.
//!
//! Terms: to *fold* is to gather nodes into UI messages; to *resolve* is to fold and to write the system prompt; to
//! *export* is to write all branches in the format of another program.
//!
//! A view reads and never stores. Who reads decides what is shown: every node has an *audience*, and [`MessageView`] says
//! whether a model or a person looks. State nodes have no audience and appear in no view.
//!
//! * `messages`: nodes folded to UI messages, page by page;
//! * `message_page`: the newest of them, and those before, without reading the whole path;
//! * `resolve`: the system prompt and the messages, as an AI SDK program takes them;
//! * `export`: the conversation as a transcript or as a session of another program;
//! * `links`: items read again by the link that a payload shows in their place;
//! * `path_search`: items of one path, found by words.
//!
//! What a model reads here is the stored conversation, uncut: compaction, previews and pins shape calls, not views. A
//! person never sees what the host added for the model, and a model never sees what was stored for people only.
//! All of a view is of one instant: the first page names the head, and everything else is read at that node.
//!
//! A *link* is the hash of an item's bytes, looked up among the items of this branch's path. So a link never reaches
//! another branch, another conversation or another owner, and an item that was redacted is reported as evicted.
//!
//! Damage is an error and never a gap: a stored item that cannot be parsed, or whose bytes do not have their hash, is
//! reported with its node, because a view that leaves it out silently would be taken for the whole conversation.
//!
//! Folding reads one page while the store loads the next, so that long paths are shown in the time of the slower of the
//! two. `links` use the path that the handle has cached; the others read from the store.
//! Not here: what a model is sent in a call (`call`), the tree for drawing (`tree`), full-text search over many
//! conversations (`search`).

mod export;
mod links;
mod message_page;
mod messages;
mod path_search;
mod resolve;

pub(crate) use export::{export_session, export_text, load_transcript};
pub use links::LinkTarget;
pub(crate) use links::{read_context, resolve_link};
pub(crate) use message_page::load_message_page;
pub use message_page::{MessagePage, OlderMessages};
pub(crate) use messages::FoldNode;
pub use messages::MessageView;
pub(crate) use path_search::search_path;
pub use resolve::Resolved;
pub(crate) use resolve::{load_messages, resolve_conversation, resolve_path};
