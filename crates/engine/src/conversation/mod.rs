//! The public methods of [`Conversation`], one file for each thing a program does with it.
//!
//! Every method is documented here and does nothing but call the free function of the module that owns the rule, so that
//! the code inside the crate never goes through its own public interface. The fields and the getters are in `handle`.
//!
//! * `read`: messages, transcripts, exports, search, events;
//! * `write`: fragments, drafts, metadata, pins;
//! * `call`: compile, record an answer, replay a call;
//! * `branches`: rewind, fork, switch, checkpoint;
//! * `compaction`: compact, undo, prepare a call;
//! * `layers`: states and functions of layers.
//!
//! A handle works on one branch. Methods that move it (`rewind`, `switch_branch`, `restore`, `clear`, and a commit that
//! edits a stored message) move this handle and its clones, which share its state; other handles stay where they are.
//! To work on two branches at once, open a second handle with [`Conversation::for_branch`].
//!
//! All methods take `&self`, may be called from several tasks, and store nothing when they fail.
//! Errors say what to do next; [`EngineError::is_retryable`](crate::EngineError::is_retryable) says whether the same call
//! may succeed later.
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use contexture_compile::Target;
//! use contexture_engine::{Engine, MessageView};
//! use contexture_ir::user;
//!
//! let chat = Engine::in_memory().conversation("support-42").open().await?;
//! let saved = chat.save([user("Where is my order?")]).await?;
//! let call = chat.compile(&Target::openai_chat("gpt-4o")).await?;
//! assert_eq!(call.base(), saved.head);
//! assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
//! # Ok::<(), contexture_engine::EngineError>(()) }).unwrap();
//! ```
//!
//! [`Conversation`]: crate::Conversation

mod branches;
mod call;
mod compaction;
mod layers;
mod read;
mod write;
