//! The fragments of a handle: what a program sets, adds and removes, over what the path carries.
//!
//! A handle that was given a list has that list. Any other shows the list of its path; what is added or removed on it is a
//! change of that list, which the next append stores. Until then it is the handle's alone.

use contexture_ir::{BranchName, Fragment, NodeId};
use contexture_store::{NodeState, PathEnd, StateChange};

use super::conversation::Conversation;
use super::read_path::load_state;
use crate::error::EngineError;
use crate::state::{
    INSTRUCTIONS_PREFIX, Instructions, fragments_change, fragments_replacement,
    require_data_fragments,
};

/// What a program did to the fragments of a handle.
#[derive(Clone, Debug)]
pub(crate) enum HandleFragments {
    /// The handle's own list, in the place of the path's.
    List(Vec<Fragment>),
    /// Changes of the path's list in the order they were made, each with its number.
    Edits {
        /// Number of the next change.
        next: u64,
        edits: Vec<(u64, FragmentEdit)>,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum FragmentEdit {
    Add(Box<Fragment>),
    /// Of the fragments with this id.
    Remove(String),
}

/// A change of state that stores a handle's fragments.
pub(crate) struct FragmentChange {
    pub(crate) change: StateChange,
    /// The handle's fragments when the change was made.
    stored: HandleFragments,
}

impl Default for HandleFragments {
    fn default() -> Self {
        Self::Edits {
            next: 0,
            edits: Vec::new(),
        }
    }
}

impl HandleFragments {
    fn push(&mut self, edit: FragmentEdit) {
        match (self, edit) {
            (Self::List(list), FragmentEdit::Add(fragment)) => list.push(*fragment),
            (Self::List(list), FragmentEdit::Remove(id)) => {
                list.retain(|fragment| fragment.id.as_deref() != Some(id.as_str()));
            }
            (Self::Edits { next, edits }, edit) => {
                // What is never stored is taken back at once, because storing would not take it back.
                if let FragmentEdit::Remove(id) = &edit {
                    edits.retain(|(_, edit)| {
                        edit.transient()
                            .is_none_or(|one| one.id.as_ref() != Some(id))
                    });
                }
                edits.push((*next, edit));
                *next += 1;
            }
        }
    }

    /// The fragments as the model reads them, where the path carries `stored`.
    fn apply(&self, stored: Vec<Fragment>) -> Vec<Fragment> {
        match self {
            Self::List(list) => list.clone(),
            Self::Edits { edits, .. } => {
                let mut list = stored;
                for (_, edit) in edits {
                    match edit {
                        FragmentEdit::Add(fragment) => list.push(Fragment::clone(fragment)),
                        FragmentEdit::Remove(id) => {
                            list.retain(|fragment| fragment.id.as_ref() != Some(id));
                        }
                    }
                }
                list
            }
        }
    }

    /// Whether an append has a change of the path's list to store.
    fn has_unstored_edits(&self) -> bool {
        match self {
            Self::List(_) => false,
            Self::Edits { edits, .. } => edits.iter().any(|(_, edit)| edit.transient().is_none()),
        }
    }

    /// Drops the changes that were stored, those that `stored` knows. Fragments that do not persist stay the handle's.
    fn drop_stored(&mut self, stored: &Self) {
        if let (Self::Edits { edits, .. }, Self::Edits { next, .. }) = (self, stored) {
            edits.retain(|(number, edit)| number >= next || edit.transient().is_some());
        }
    }
}

impl FragmentEdit {
    /// The fragment that this adds, if it is never stored.
    fn transient(&self) -> Option<&Fragment> {
        match self {
            Self::Add(fragment) if !fragment.persist => Some(fragment),
            Self::Add(_) | Self::Remove(_) => None,
        }
    }
}

/// Replaces the handle's fragments, which the model reads before the history.
pub(crate) fn set_fragments(
    chat: &Conversation,
    fragments: impl IntoIterator<Item = Fragment>,
) -> Result<(), EngineError> {
    let fragments: Vec<Fragment> = fragments.into_iter().collect();
    require_data_fragments(&fragments)?;
    chat.lock_state().fragments = HandleFragments::List(fragments);
    Ok(())
}

/// Adds fragments after those that the model reads now.
pub(crate) fn add_fragments(
    chat: &Conversation,
    fragments: impl IntoIterator<Item = Fragment>,
) -> Result<(), EngineError> {
    let fragments: Vec<Fragment> = fragments.into_iter().collect();
    require_data_fragments(&fragments)?;
    let mut state = chat.lock_state();
    for fragment in fragments {
        state.fragments.push(FragmentEdit::Add(Box::new(fragment)));
    }
    Ok(())
}

/// Removes the fragments with this id and returns their number.
pub(crate) async fn remove_fragments(chat: &Conversation, id: &str) -> Result<usize, EngineError> {
    let shown = list_fragments(chat).await?;
    let removed = shown
        .iter()
        .filter(|fragment| fragment.id.as_deref() == Some(id))
        .count();
    if removed > 0 {
        let edit = FragmentEdit::Remove(id.to_owned());
        chat.lock_state().fragments.push(edit);
    }
    Ok(removed)
}

/// Loads the fragments that the model reads at the head of this branch.
pub(crate) async fn list_fragments(chat: &Conversation) -> Result<Vec<Fragment>, EngineError> {
    let at = chat.current_position();
    Ok(instructions_at_position(chat, at).await?.fragments)
}

/// The fragments that the path carries, whatever the handle adds or removes.
pub(crate) async fn list_stored_fragments(
    chat: &Conversation,
) -> Result<Vec<Fragment>, EngineError> {
    let state = load_state(chat, chat.current_position(), INSTRUCTIONS_PREFIX).await?;
    Ok(Instructions::from_state(&state)?.fragments)
}

/// What is said before the history: the handle's fragments over those of the path; imported leading messages in any case.
pub(crate) async fn instructions_at_position(
    chat: &Conversation,
    at: PathEnd,
) -> Result<Instructions, EngineError> {
    instructions_from_state(chat, &load_state(chat, at, INSTRUCTIONS_PREFIX).await?)
}

/// The same, of a state that was read.
pub(crate) fn instructions_from_state(
    chat: &Conversation,
    state: &NodeState,
) -> Result<Instructions, EngineError> {
    let mut instructions = Instructions::from_state(state)?;
    let stored = std::mem::take(&mut instructions.fragments);
    instructions.fragments = chat.lock_state().fragments.apply(stored);
    Ok(instructions)
}

/// The change of state that goes with an append of this handle on `branch`, behind `parent`; `None` if it has none to make.
/// On another branch than its own a handle changes nothing.
///
/// A changed list replaces the one it was made from and no other: if an append changed that meanwhile, the change is stale.
pub(crate) async fn fragment_change(
    chat: &Conversation,
    branch: &BranchName,
    parent: Option<NodeId>,
) -> Result<Option<FragmentChange>, EngineError> {
    let stored = {
        let local = chat.lock_state();
        if local.branch != *branch {
            return Ok(None);
        }
        // One copy for the change and for what it stores: somebody may add to the list before the append is done.
        local.fragments.clone()
    };
    let change = match &stored {
        HandleFragments::List(list) => fragments_change(list)?,
        edits if edits.has_unstored_edits() => {
            let state = match parent {
                Some(parent) => {
                    load_state(chat, PathEnd::Node(parent), INSTRUCTIONS_PREFIX).await?
                }
                None => NodeState::default(),
            };
            let list = edits.apply(Instructions::from_state(&state)?.fragments);
            fragments_replacement(&state, &list)?
        }
        HandleFragments::Edits { .. } => return Ok(None),
    };
    Ok(Some(FragmentChange { change, stored }))
}

impl FragmentChange {
    /// Takes note that the change was stored on the handle's branch.
    pub(crate) fn mark_stored(&self, chat: &Conversation) {
        chat.lock_state().fragments.drop_stored(&self.stored);
    }
}
