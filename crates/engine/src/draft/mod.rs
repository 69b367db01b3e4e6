//! Drafts: messages and items that are about to be stored.
//!
//! A draft is a value that belongs to the branch it was made on. Resolving shows its messages as if they were stored;
//! committing stores them in one transaction. Both ask the same plan, so that they cannot differ. A draft that is committed
//! twice, because the first outcome was unknown, is stored once: its ids derive from a key.
//!
//! * `stage`: fragments as staged entries, one message of each id;
//! * `classify`: which staged messages are new, unchanged, grown or edited;
//! * `plan`: what would be stored, and where;
//! * `new_items`: the nodes to append, and the calls that outputs answer;
//! * `commit`: the append.

mod classify;
mod commit;
mod new_items;
mod plan;
mod stage;

pub use commit::Committed;

use contexture_ir::{BranchName, Fragment, Item, NodeId};
use contexture_store::PathEnd;

use self::commit::store_staged;
use self::new_items::build_new_items;
use self::plan::plan_draft;
use self::stage::StagedEntry;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::hooks::STALE_STATE_TRIES;
use crate::view::{FoldNode, Resolved, resolve_path};

/// Behind which head a draft goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ExpectedHead {
    /// Whichever there is.
    #[default]
    Tip,
    /// This one and no other.
    Only(Option<NodeId>),
}

/// Messages and items to be stored together. Made by [`Conversation::draft`].
///
/// A draft belongs to the branch that its handle was on when it was made: it is resolved and committed there, also after the
/// handle was moved elsewhere by [`rewind`](Conversation::rewind), [`switch_branch`](Conversation::switch_branch) or a
/// restore. Only a commit of its own that edits a message moves it, to the branch that the edit opens.
#[derive(Debug)]
pub struct Draft {
    chat: Conversation,
    branch: BranchName,
    key: [u8; 16],
    messages: Vec<Fragment>,
    /// Items, each behind so many staged messages.
    items: Vec<(usize, Item)>,
    expected_head: ExpectedHead,
}

/// Returns an empty draft.
pub(crate) fn new_draft(chat: &Conversation) -> Draft {
    Draft {
        chat: chat.clone(),
        branch: chat.branch(),
        key: chat.engine().new_key(),
        messages: Vec::new(),
        items: Vec::new(),
        expected_head: ExpectedHead::Tip,
    }
}

/// Stores messages: pushes them to a draft and commits it.
pub(crate) async fn save_messages(
    chat: &Conversation,
    messages: impl IntoIterator<Item = Fragment>,
) -> Result<Committed, EngineError> {
    let mut draft = new_draft(chat);
    messages.into_iter().for_each(|message| draft.push(message));
    draft.commit().await
}

impl Draft {
    /// Adds a message: [`user`](contexture_ir::user), [`assistant`](contexture_ir::assistant),
    /// [`last_assistant_message`](contexture_ir::last_assistant_message), or an application's own.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut draft = chat.draft();
    /// draft.push(user("Hello"));
    /// draft.push(assistant_text("Hi."));
    /// assert_eq!(draft.commit().await?.messages.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(&mut self, message: Fragment) {
        self.messages.push(message);
    }

    /// Adds an item, a tool's output say. It joins the message it belongs to: an output its call's,
    /// any other item one of its own.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::{FunctionCall, FunctionCallOutput, Output, user};
    /// # use contexture_engine::{Engine, MessageView};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let mut draft = chat.draft();
    /// draft.push(user("What is in the log?"));
    /// draft.push_item(FunctionCall::new("call_1", "read_log", "{}"));
    /// draft.push_item(FunctionCallOutput::new("call_1", Output::Text("Nothing.".to_owned())));
    /// draft.commit().await?;
    /// // The call and its output are one message of the assistant.
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push_item(&mut self, item: impl Into<Item>) {
        self.items.push((self.messages.len(), item.into()));
    }

    /// Whether nothing is staged.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut draft = chat.draft();
    /// assert!(draft.is_empty());
    /// draft.push(user("Hello"));
    /// assert!(!draft.is_empty());
    /// draft.commit().await?;
    /// assert!(draft.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.items.is_empty()
    }

    /// Says which head the branch must have: if it has another, nothing is stored, whoever said what is in the draft.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut draft = chat.draft();
    /// draft.expect_head(chat.head().await?);
    /// draft.push(assistant_text("An answer to what was said so far."));
    /// // Somebody else is faster.
    /// chat.save([user("Wait!")]).await?;
    /// assert!(draft.commit().await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expect_head(&mut self, head: Option<NodeId>) {
        self.expected_head = ExpectedHead::Only(head);
    }

    /// Says by what the draft is known: the same under the same key, also of another process, is stored once. Default: a
    /// key of its own. Different drafts under one key are an `IdConflict`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// // The key of a job that a queue may deliver twice.
    /// for _ in 0..2 {
    ///     let mut draft = chat.draft();
    ///     draft.set_idempotency_key([7; 16]);
    ///     draft.push(user("Hello"));
    ///     draft.commit().await?;
    /// }
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_idempotency_key(&mut self, key: [u8; 16]) {
        self.key = key;
    }

    /// Returns the branch that the draft is resolved and committed on.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Hello"), assistant_text("Hi.")]).await?;
    /// let mut draft = chat.draft();
    /// draft.push(user("How are you?"));
    /// // The handle goes elsewhere; the draft does not.
    /// chat.rewind(saved.messages[0].as_str()).await?;
    /// assert_eq!(draft.branch().as_str(), "main");
    /// assert_eq!(draft.commit().await?.branch.as_str(), "main");
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn branch(&self) -> &BranchName {
        &self.branch
    }

    /// Stores everything staged, in one transaction.
    ///
    /// A message whose id is stored on this branch is compared first: the same content is left
    /// alone; one that only grew at the end of the branch gets its new items; changed content opens a
    /// branch before it, made active, and the original stays. An item whose id is on the branch is left alone. Of several
    /// staged messages with one id the last counts, in the place of the first. Fragments with `persist: false` are not
    /// stored.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Refund the gloves")]).await?;
    /// // An edited message: the same id, other content.
    /// let mut message = chat.messages(MessageView::User).await?.remove(0);
    /// message.parts = vec![contexture_ir::text_part("Refund the shoes")];
    /// let mut draft = chat.draft();
    /// draft.push(user(message));
    /// let committed = draft.commit().await?;
    /// assert!(committed.opened_branch, "the original stays on its branch");
    /// assert_eq!(chat.messages(MessageView::User).await?[0].joined_text(), "Refund the shoes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NotAMessage`], a codec's, a validation error; [`EngineError::OtherRole`] for two staged messages of
    /// one id and [`EngineError::ItemConflict`] for an item that is known with other content; or the store's. Nothing is
    /// stored then, and the draft may be committed again.
    pub async fn commit(&mut self) -> Result<Committed, EngineError> {
        let staged = self.staged_entries(|fragment| fragment.persist)?;
        let mut tries = STALE_STATE_TRIES;
        let committed = loop {
            let staged = staged.clone();
            let (chat, expected) = (&self.chat, self.expected_head);
            let stored = store_staged(chat, &self.key, &self.branch, staged, expected);
            tries -= 1;
            match stored.await {
                // Another changed what a layer keeps meanwhile: it sees the draft again, behind that.
                Err(error) if tries > 0 && error.is_stale_state() => {}
                stored => break stored?,
            }
        };
        // Only after success: a failed commit can be repeated with the same key and stores once.
        self.messages.clear();
        self.items.clear();
        self.key = self.chat.engine().new_key();
        self.branch = committed.branch.clone();
        Ok(committed)
    }

    /// What is staged, in order, as far as `keep` admits the fragment.
    fn staged_entries(&self, keep: fn(&Fragment) -> bool) -> Result<Vec<StagedEntry>, EngineError> {
        let mut staged = Vec::new();
        let mut items = self.items.iter().peekable();
        // Counted before anything is left out: an id that derives from the number is the same in every view.
        let mut numbers = 0..;
        for (index, fragment) in self.messages.iter().enumerate() {
            while let Some((_, item)) = items.next_if(|(at, _)| *at <= index) {
                let number = numbers.next().unwrap_or_default();
                staged.push(StagedEntry::from_item(number, item));
            }
            let number = numbers.next().unwrap_or_default();
            if keep(fragment) {
                staged.push(StagedEntry::from_fragment(number, fragment)?);
            }
        }
        let rest = items.zip(numbers);
        staged.extend(rest.map(|((_, item), number)| StagedEntry::from_item(number, item)));
        Ok(staged)
    }
}

impl Draft {
    /// The system prompt and the messages as a commit would leave them, ids included, with the fragments that do not
    /// persist in their places. Nothing is stored, and layers that change what is appended are not asked.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut draft = chat.draft();
    /// draft.push(user("Hello"));
    /// let preview = draft.resolve().await?;
    /// assert_eq!(preview.messages[0].joined_text(), "Hello");
    /// assert_eq!(chat.head().await?, None);
    /// // The ids are those of the commit.
    /// let committed = draft.commit().await?;
    /// assert_eq!(preview.messages[0].id, committed.messages[0].as_str());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Conversation::resolve`], and for what is staged as [`Draft::commit`].
    pub async fn resolve(&self) -> Result<Resolved, EngineError> {
        let staged = self.staged_entries(|_| true)?;
        let plan = plan_draft(&self.chat, &self.key, &self.branch, staged).await?;
        let pending = build_new_items(&self.chat, &self.key, &plan).await?;
        let pending = pending.iter();
        let pending = pending.map(|node| FoldNode::from_new(&node.new, &node.item));
        let pending = pending.collect::<Result<Vec<_>, _>>()?;
        resolve_path(&self.chat, plan.parent().map(PathEnd::Node), &pending).await
    }
}
