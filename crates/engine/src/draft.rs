//! Drafts: what is about to be said.
//!
//! A draft is a value. It holds messages and items that are not stored yet; resolving shows them as
//! if they were, committing stores them in one transaction. A draft that was committed twice, because
//! the first outcome was unknown say, stores once: its ids derive from a key made with the draft.

use contexture_ir::{Body, Fragment, Item, NodeId, UiMessage};

use crate::basis::ExpectedHead;
use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::layer_store::TRIES;
use crate::save::{Committed, StagedItem};

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

impl Conversation {
    /// An empty draft.
    #[must_use]
    pub fn draft(&self) -> Draft {
        Draft {
            chat: self.clone(),
            key: self.engine().new_key(),
            messages: Vec::new(),
            items: Vec::new(),
            expected_head: ExpectedHead::Tip,
        }
    }

    /// Stores messages: a draft pushed and committed.
    ///
    /// # Errors
    /// As [`Draft::commit`].
    pub async fn save(
        &self,
        messages: impl IntoIterator<Item = Fragment>,
    ) -> Result<Committed, EngineError> {
        let mut draft = self.draft();
        messages.into_iter().for_each(|message| draft.push(message));
        draft.commit().await
    }
}

impl Draft {
    /// Adds a message: [`user`](contexture_ir::user), [`assistant`](contexture_ir::assistant),
    /// [`last_assistant_message`](contexture_ir::last_assistant_message), or an application's own.
    pub fn push(&mut self, message: Fragment) {
        self.messages.push(message);
    }

    /// Adds an item, a tool's output say. It joins the message it belongs to: an output its call's,
    /// any other item one of its own.
    pub fn push_item(&mut self, item: impl Into<Item>) {
        self.items.push((self.messages.len(), item.into()));
    }

    /// Whether nothing is staged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.items.is_empty()
    }

    /// Says against which head the draft was made. An answer of the model computed against it is then
    /// refused if the branch has moved since; a draft of a person's input goes after whatever is
    /// there.
    pub fn based_on(&mut self, head: Option<NodeId>) {
        self.expected_head = ExpectedHead::Answer(head);
    }

    /// Says which head the branch must have: if it has another, nothing is stored, whoever said what is in the draft.
    pub fn expect_head(&mut self, head: Option<NodeId>) {
        self.expected_head = ExpectedHead::Only(head);
    }

    /// Says by what the draft is known: the same under the same key, also of another process, is stored once. Default: a
    /// key of its own. Different drafts under one key are an `IdConflict`.
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
    /// # Errors
    /// [`EngineError::NotAMessage`], a codec's, a validation error, or the store's; nothing is stored
    /// then, and the draft may be committed again.
    pub async fn commit(&mut self) -> Result<Committed, EngineError> {
        let mut staged = self.staged_items(|fragment| fragment.persist)?;
        self.chat.replace_last_assistant(&mut staged).await?;
        let mut tries = TRIES;
        let committed = loop {
            let staged = staged.clone();
            let stored = self
                .chat
                .store_staged(&self.key, staged, self.expected_head);
            tries -= 1;
            match stored.await {
                // Another changed what a layer keeps meanwhile: it sees the draft again, behind that.
                Err(error) if tries > 0 && error.is_stale_state() => {}
                stored => break stored?,
            }
        };
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

fn encode_message(fragment: &Fragment) -> Result<StagedItem, EngineError> {
    if let Body::LastAssistant(text) = &fragment.body {
        return Ok(StagedItem::LastAssistant(text.clone()));
    }
    let message: UiMessage = match fragment.encode_message() {
        Some(Ok(message)) => message,
        Some(Err(source)) => {
            return Err(EngineError::Codec {
                name: fragment.name.clone(),
                source,
            });
        }
        None => {
            return Err(EngineError::NotAMessage {
                name: fragment.name.clone(),
            });
        }
    };
    Ok(StagedItem::Message(message))
}
