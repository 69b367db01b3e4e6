//! Drafts: messages and items that are about to be stored.
//!
//! A draft is a value. Resolving shows its messages as if they were stored; committing stores them in one transaction. A
//! draft that is committed twice, because the first outcome was unknown, is stored once: its ids derive from a key.
//!
//! * `stage`: fragments as staged messages;
//! * `classify`: which staged messages are new, unchanged, grown or edited;
//! * `new_items`: the items to append, and the calls that outputs answer;
//! * `commit`: where they go, and the append.

mod classify;
mod commit;
mod new_items;
mod stage;

pub use commit::Committed;

use std::collections::BTreeMap;

use contexture_ir::{Fragment, Item, NodeId, UiMessage};
use contexture_render::Renderer;
use contexture_wire::ui::validate;

use self::commit::store_staged;
use self::stage::{StagedItem, encode_message, replace_last_assistant};
use crate::error::EngineError;
use crate::handle::{Conversation, instructions_at_position};
use crate::hooks::STALE_STATE_TRIES;
use crate::view::{MessageView, Resolved, fold_messages, system_prompt};

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
#[derive(Debug)]
pub struct Draft {
    chat: Conversation,
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

    /// Stores everything staged, in one transaction.
    ///
    /// A message whose id is stored on this branch is compared first: the same content is left
    /// alone; one that only grew at the end of the branch gets its new items; changed content opens a
    /// branch before it, made active, and the original stays. Fragments with `persist: false` are not
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
    /// [`EngineError::NotAMessage`], a codec's, a validation error, or the store's; nothing is stored
    /// then, and the draft may be committed again.
    pub async fn commit(&mut self) -> Result<Committed, EngineError> {
        let mut staged = self.staged_items(|fragment| fragment.persist)?;
        replace_last_assistant(&self.chat, &mut staged).await?;
        let mut tries = STALE_STATE_TRIES;
        let committed = loop {
            let staged = staged.clone();
            let stored = store_staged(&self.chat, &self.key, staged, self.expected_head);
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
        Ok(committed)
    }

    pub(crate) fn chat(&self) -> &Conversation {
        &self.chat
    }

    /// What is staged, in order, as far as `keep` admits the fragment.
    pub(crate) fn staged_items(
        &self,
        keep: fn(&Fragment) -> bool,
    ) -> Result<Vec<StagedItem>, EngineError> {
        let mut staged = Vec::new();
        let mut items = self.items.iter().peekable();
        for (index, fragment) in self.messages.iter().enumerate() {
            while let Some((_, item)) = items.next_if(|(at, _)| *at <= index) {
                staged.push(StagedItem::Item(item.clone()));
            }
            if keep(fragment) {
                staged.push(encode_message(fragment)?);
            }
        }
        staged.extend(items.map(|(_, item)| StagedItem::Item(item.clone())));
        Ok(staged)
    }
}

impl Draft {
    /// The system prompt and the messages, as they would be after a commit. A staged message with the
    /// id of a stored one stands in its place, one without parts is left out. Ids are assigned at
    /// commit: until then a new message's id is empty.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_render::XmlRenderer;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let mut draft = chat.draft();
    /// draft.push(user("Hello"));
    /// let preview = draft.resolve(&XmlRenderer::default()).await?;
    /// assert_eq!(preview.messages[0].joined_text(), "Hello");
    /// assert_eq!(chat.head().await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Conversation::resolve`], and for what is staged as [`Draft::commit`].
    pub async fn resolve(&self, renderer: &dyn Renderer) -> Result<Resolved, EngineError> {
        let chat = self.chat();
        let (head, mut messages) = fold_messages(chat, MessageView::Model).await?;
        let instructions = instructions_at_position(chat, head).await?;
        let mut staged = self.staged_items(|_| true)?;
        replace_last_assistant(chat, &mut staged).await?;
        merge_staged_messages(&mut messages, staged)?;
        let system_prompt = system_prompt(&instructions, renderer)?;
        Ok(Resolved {
            system_prompt,
            messages,
        })
    }
}

/// Puts staged messages in the place of those with their id, or behind all others. What is stored is
/// valid by construction; what is staged is checked here.
fn merge_staged_messages(
    messages: &mut Vec<UiMessage>,
    staged: Vec<StagedItem>,
) -> Result<(), EngineError> {
    let places = messages.iter().enumerate();
    let mut places: BTreeMap<String, usize> = places
        .map(|(place, message)| (message.id.clone(), place))
        .collect();
    for staged in staged {
        let StagedItem::Message(message) = staged else {
            continue;
        };
        if message.parts.is_empty() {
            continue;
        }
        // Only what is staged is validated: what is stored was validated when it came.
        let checked = validate(std::slice::from_ref(&message))?;
        let known = places.get(&message.id).filter(|_| !message.id.is_empty());
        match known.and_then(|place| messages.get_mut(*place)) {
            Some(known) => *known = message,
            None => {
                places.insert(message.id, messages.len());
                messages.extend(checked);
            }
        }
    }
    Ok(())
}
