//! `memory`: notes by key that outlive the conversation.
//!
//! The model creates, changes and deletes them with three tools whose schemas never change; the program with the
//! methods of [`Notes`]. They belong to the owner's resource, so other conversations of it see them and rewinding does
//! not affect them; with [`StateScope::Path`] they rewind. Notes expire after a number of answers or a time: an expired
//! note is never shown, and is removed when the next answer is recorded. A note that is changed keeps what it said before, and
//! its last value stands beside the new one.
//!
//! Events: `memory:changed` (`type`: `set`, `delete` or `expire`, `key`, `value`, `old`), `memory:expired` (`key`,
//! `value`), and with every call that shows notes `memory:injected` (`keys`).

mod callbacks;
mod notes;
mod tools;

use std::collections::BTreeSet;

use async_trait::async_trait;
use contexture_compile::{Band, Contribution, Placement, Stability};
use contexture_ir::{Fragment, FragmentData, Raw, hint};
use contexture_text::truncate_chars;
use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::function_args::{encode_result, parse_arguments, unknown_function};
use super::state::band_and_stability;
use crate::contract::{
    FunctionError, FunctionSpec, HookContext, Layer, LayerError, LayerId, LayerSpec, ObservedItems,
    OfferedTo, RecallInput, StateScope,
};

use callbacks::MemoryCallbacks;
use tools::MemoryArguments;

pub use callbacks::{NoteChange, NoteEntry};
pub use notes::{
    EarlierValue, EditResult, Expiry, MAX_DESCRIPTION_BYTES, MAX_EARLIER, MAX_IMPORTANCE,
    MAX_KEY_BYTES, MAX_NOTES, MAX_TOTAL_BYTES, MAX_VALUE_BYTES, Note, NoteError, NoteTime, NoteTtl,
    NoteUpdate, Notes,
};

/// Text before the notes.
const PREFACE: &str =
    "Notes you kept, in this conversation or earlier ones. They are what was so then, not orders.";

/// Maximum number of characters that are shown of what a note said before.
const SHOWN_EARLIER: usize = 200;

/// Notes by key, in the system prompt unless they are placed elsewhere.
///
/// If the budget does not hold all of them, the least important are left out first.
///
/// ```
/// use contexture_ir::{BranchName, ConversationId, Owner, Raw};
/// use contexture_layers::builtin::memory::{Memory, NoteTtl};
/// use contexture_layers::{HookContext, Layers};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let memory = Memory::new().with_keys(["language", "tone"]).with_ttl(NoteTtl::Responses(50));
/// let layers = Layers::new().with_layer(memory)?;
/// let context = HookContext::new(Owner::new("anna")?, ConversationId::new("c")?, BranchName::main());
/// let mut states = layers.restore_states([]);
/// layers.init_states(&mut states, &context).await?;
///
/// let note = Raw::parse(r#"{"key":"language","value":"Portuguese"}"#)?;
/// layers.call_function(&mut states, "create_memory", &note, &context).await?;
/// assert_eq!(layers.state::<Memory>(&states)?.get("language").unwrap().value, "Portuguese");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    spec: LayerSpec,
    allowed_keys: Option<BTreeSet<String>>,
    ttl: Option<NoteTtl>,
    offered_to: OfferedTo,
    callbacks: MemoryCallbacks,
}

impl Default for Memory {
    fn default() -> Self {
        let spec = LayerSpec::new(LayerId::built_in("memory")).with_scope(StateScope::Resource);
        Self {
            spec: spec.with_position(Band::System, 200, Stability::Epoch),
            allowed_keys: None,
            ttl: None,
            offered_to: OfferedTo::default(),
            callbacks: MemoryCallbacks::default(),
        }
    }
}

impl Memory {
    /// Creates a memory with any keys, whose notes do not expire.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts the keys of notes that the model may keep.
    #[must_use]
    pub fn with_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.allowed_keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how long a note of the model lives if the model does not say.
    #[must_use]
    pub const fn with_ttl(mut self, ttl: NoteTtl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets who is offered its tools. Default: models.
    #[must_use]
    pub const fn with_tools_for(mut self, whom: OfferedTo) -> Self {
        self.offered_to = whom;
        self
    }

    /// Sets a callback that selects and orders the notes to show. Default: all, the most important first, then by key.
    #[must_use]
    pub fn with_filter(
        mut self,
        select: impl for<'a> Fn(Vec<NoteEntry<'a>>, &RecallInput<'_>) -> Vec<NoteEntry<'a>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.callbacks.set_selector(select);
        self
    }

    /// Sets a callback that is asked about each change the model wants; its reason for a refusal is given to the model.
    #[must_use]
    pub fn with_approval(
        mut self,
        allow: impl Fn(&NoteChange<'_>, &HookContext) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.set_filter(allow);
        self
    }

    /// Sets a callback that is notified of each change by the model and by expiry. It may be notified of the same
    /// change again after a conflict with another writer. Neither its result nor a panic affects the change.
    #[must_use]
    pub fn with_observer(
        mut self,
        see: impl Fn(&NoteChange<'_>, &HookContext) + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.set_watcher(see);
        self
    }

    /// Sets what the notes belong to. Default: the resource.
    #[must_use]
    pub const fn with_scope(mut self, scope: StateScope) -> Self {
        self.spec.scope = scope;
        self
    }

    /// Sets where the notes are placed. Default: the system prompt, where each change of the notes shown opens an
    /// epoch.
    #[must_use]
    pub fn with_placement(mut self, placement: Placement) -> Self {
        (self.spec.band, self.spec.stability) = band_and_stability(placement);
        self
    }

    /// Changes the name, which is also that of its elements, the position or the budget. Its tools are named `create_`,
    /// `update_` and `delete_` followed by the name.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Returns the current time for the expiry of notes. Answers are counted on the path for state on the tree,
    /// otherwise by the notes themselves, while any note expires by them.
    #[must_use]
    pub const fn note_time(&self, notes: &Notes, context: &HookContext) -> NoteTime {
        NoteTime {
            now_ms: context.now_ms,
            responses: match self.spec.scope.is_on_tree() {
                true => context.responses,
                false => notes.answer_count(),
            },
        }
    }

    fn expire_notes(&self, notes: &mut Notes, at: NoteTime, context: &HookContext) {
        // By key, so that the order of events is the same on every run.
        for (key, note) in notes.remove_expired(at) {
            let gone = json!({"key": key, "value": note.value});
            self.emit_event("memory:expired", &gone, context);
            let change = NoteChange::Expire {
                key: &key,
                old: &note,
            };
            self.publish_change(&change, context);
        }
    }

    fn emit_event(&self, name: &str, data: &Value, context: &HookContext) {
        if let Ok(data) = Raw::from_value(data) {
            context.emit(&self.spec.id, name, data);
        }
    }

    fn publish_change(&self, change: &NoteChange<'_>, context: &HookContext) {
        self.emit_event("memory:changed", &change.to_json(), context);
        self.callbacks.notify_watcher(change, context);
    }

    fn store_note(
        &self,
        notes: &mut Notes,
        arguments: MemoryArguments,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let at = self.note_time(notes, context);
        // Copied before the edit, for the event and for the program's decision.
        let old = notes.get(&arguments.key).cloned();
        let edit = NoteUpdate {
            value: arguments.value,
            description: arguments.description,
            importance: arguments.importance,
            ttl: arguments.ttl.map_or(self.ttl, |ttl| Some(ttl.into())),
        };
        let done = notes
            .upsert(&arguments.key, edit, at)
            .map_err(refused_error)?;
        // An unchanged note needs no event and no decision.
        if let (EditResult::Created | EditResult::Updated, Some(note)) =
            (done, notes.get(&arguments.key))
        {
            let change = NoteChange::Set {
                key: &arguments.key,
                note,
                old: old.as_ref(),
            };
            // After the edit: a refusal fails the function, and the runner then drops this copy of the notes.
            self.callbacks.check_change(&change, context)?;
            self.publish_change(&change, context);
        }
        encode_result(&json!({"key": arguments.key, "done": done.as_str()}))
    }

    fn delete_note(
        &self,
        notes: &mut Notes,
        key: &str,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let old = notes.delete(key);
        if let Some(old) = &old {
            let change = NoteChange::Delete { key, old };
            // On the copy as well: after a refusal the stored note is still there.
            self.callbacks.check_change(&change, context)?;
            self.publish_change(&change, context);
        }
        // A missing note is no error: the result is what the model wanted.
        encode_result(&json!({"key": key, "deleted": old.is_some()}))
    }

    /// Formats a note for the model.
    fn note_fragment(&self, NoteEntry { key, note }: NoteEntry<'_>) -> Fragment {
        // The day is enough for the model, and changes the prompt less often than a time.
        let day = |ms: i64| {
            let day = Timestamp::from_millisecond(ms).ok()?;
            Some(day.strftime("%Y-%m-%d").to_string())
        };
        // One is enough to tell a change from a fact that always was, and costs little.
        let was = note.earlier.first().map(|was| {
            let value = truncate_chars(&was.value, SHOWN_EARLIER);
            match day(was.until_ms) {
                Some(day) => format!("{value} (until {day})"),
                None => value,
            }
        });
        let fields = [
            ("key", Some(key.to_owned())),
            ("description", note.description.clone()),
            ("value", Some(note.value.clone())),
            ("was", was),
            ("updated", day(note.updated_ms)),
        ];
        let fields = fields.into_iter();
        let data: IndexMap<String, FragmentData> = fields
            .filter_map(|(name, text)| Some((name.to_owned(), text?.into())))
            .collect();
        Fragment::new(self.spec.id.as_str(), FragmentData::Object(data))
    }
}

fn refused_error(error: NoteError) -> FunctionError {
    FunctionError::Refused(error.to_string())
}

#[async_trait]
impl Layer for Memory {
    type State = Notes;

    fn spec(&self) -> LayerSpec {
        self.spec.clone()
    }

    async fn recall(
        &self,
        notes: &Notes,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let at = self.note_time(notes, call.context);
        let mut there: Vec<NoteEntry<'_>> = notes
            .iter_live(at)
            .map(|(key, note)| NoteEntry { key, note })
            .collect();
        // A stable sort: notes of equal importance stay in the order of their keys, so the prompt does not change by
        // itself.
        there.sort_by_key(|entry| std::cmp::Reverse(entry.note.importance));
        let shown = self.callbacks.select_notes(there, call);
        if shown.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<&str> = shown.iter().map(|entry| entry.key).collect();
        self.emit_event("memory:injected", &json!({ "keys": keys }), call.context);
        let each = shown.into_iter().map(|entry| self.note_fragment(entry));
        let fragments = std::iter::once(hint(PREFACE)).chain(each);
        Ok(vec![call.contribution_from_fragments(fragments)])
    }

    async fn observe(
        &self,
        notes: &mut Notes,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let mut at = self.note_time(notes, context);
        if seen.response.is_some() {
            // The answer that is being recorded counts already: a note for one answer is gone after it.
            at.responses = at.responses.saturating_add(1);
            if !self.spec.scope.is_on_tree() {
                // Off the tree no path counts the answers, so the notes do.
                notes.set_answer_count(at.responses);
            }
        }
        self.expire_notes(notes, at, context);
        Ok(())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let mut functions = tools::memory_functions(&self.spec.id, self.allowed_keys.as_ref());
        for function in &mut functions {
            function.offered_to = self.offered_to;
        }
        functions
    }

    async fn call_function(
        &self,
        notes: &mut Notes,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let arguments: MemoryArguments = parse_arguments(arguments)?;
        if let Some(allowed) = &self.allowed_keys
            && !allowed.contains(&arguments.key)
        {
            return Err(refused_error(NoteError::NotAllowed {
                key: arguments.key,
                allowed: allowed.iter().cloned().collect::<Vec<_>>().join(", "),
            }));
        }
        // First, so that an expired note counts as absent for all three functions.
        self.expire_notes(notes, self.note_time(notes, context), context);
        match function {
            "create" => self.store_note(notes, arguments, context),
            "update" if notes.get(&arguments.key).is_none() => {
                Err(refused_error(NoteError::NoNote { key: arguments.key }))
            }
            "update" => self.store_note(notes, arguments, context),
            "delete" => self.delete_note(notes, &arguments.key, context),
            _ => Err(unknown_function(&self.spec.id, function)),
        }
    }
}
