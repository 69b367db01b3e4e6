//! Drafts: what is about to be said.
//!
//! A draft is a value. It holds messages and items that are not stored yet; resolving shows them as
//! if they were, committing stores them in one transaction. A draft that was committed twice, because
//! the first outcome was unknown say, stores once: its ids derive from a key made with the draft.

use contexture_ir::{Body, Fragment, Item, NodeId, UiMessage};

use crate::basis::Basis;
use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::layer_store::TRIES;
use crate::save::{Committed, Staged};

/// Messages and items to be stored together. Made by [`Conversation::draft`].
#[derive(Debug)]
pub struct Draft {
    chat: Conversation,
    key: [u8; 16],
    staged: Vec<Fragment>,
    /// Items, each behind so many staged messages.
    items: Vec<(usize, Item)>,
    basis: Basis,
}

impl Conversation {
    /// An empty draft.
    #[must_use]
    pub fn draft(&self) -> Draft {
        Draft {
            chat: self.clone(),
            key: self.engine().fresh_key(),
            staged: Vec::new(),
            items: Vec::new(),
            basis: Basis::Tip,
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
        self.staged.push(message);
    }

    /// Adds an item, a tool's output say. It joins the message it belongs to: an output its call's,
    /// any other item one of its own.
    pub fn push_item(&mut self, item: impl Into<Item>) {
        self.items.push((self.staged.len(), item.into()));
    }

    /// Whether nothing is staged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.items.is_empty()
    }

    /// Says against which head the draft was made. An answer of the model computed against it is then
    /// refused if the branch has moved since; a draft of a person's input goes after whatever is
    /// there.
    pub fn based_on(&mut self, head: Option<NodeId>) {
        self.basis = Basis::Answer(head);
    }

    /// Says which head the branch must have: if it has another, nothing is stored, whoever said what is in the draft.
    pub fn expect_head(&mut self, head: Option<NodeId>) {
        self.basis = Basis::Only(head);
    }

    /// Says by what the draft is known: the same under the same key, also of another process, is stored once. Default: a
    /// key of its own. Different drafts under one key are an `IdConflict`.
    pub fn keyed(&mut self, key: [u8; 16]) {
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
        let mut staged = self.staged(|fragment| fragment.persist)?;
        self.chat.replace_last_assistant(&mut staged).await?;
        let mut tries = TRIES;
        let committed = loop {
            let staged = staged.clone();
            let stored = self.chat.store_staged(&self.key, staged, self.basis);
            tries -= 1;
            match stored.await {
                // Another changed what a layer keeps meanwhile: it sees the draft again, behind that.
                Err(error) if tries > 0 && error.is_stale_state() => {}
                stored => break stored?,
            }
        };
        self.staged.clear();
        self.items.clear();
        self.key = self.chat.engine().fresh_key();
        Ok(committed)
    }

    pub(crate) fn chat(&self) -> &Conversation {
        &self.chat
    }

    /// What is staged, in order, as far as `keep` admits the fragment.
    pub(crate) fn staged(&self, keep: fn(&Fragment) -> bool) -> Result<Vec<Staged>, EngineError> {
        let mut staged = Vec::new();
        let mut items = self.items.iter().peekable();
        for (index, fragment) in self.staged.iter().enumerate() {
            while let Some((_, item)) = items.next_if(|(at, _)| *at <= index) {
                staged.push(Staged::Item(item.clone()));
            }
            if keep(fragment) {
                staged.push(encode(fragment)?);
            }
        }
        staged.extend(items.map(|(_, item)| Staged::Item(item.clone())));
        Ok(staged)
    }
}

fn encode(fragment: &Fragment) -> Result<Staged, EngineError> {
    if let Body::LastAssistant(text) = &fragment.body {
        return Ok(Staged::LastAssistant(text.clone()));
    }
    let message: UiMessage = match fragment.encode() {
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
    Ok(Staged::Message(message))
}
