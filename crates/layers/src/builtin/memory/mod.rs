//! `memory`: notes under keys that outlive the conversation.
//!
//! The model makes, changes and deletes them with three tools whose schemas never change; the program with the methods
//! of [`Notes`]. They belong to the owner's resource, so other conversations of it see them and rewinding does not
//! touch them; with [`Scope::Path`] they rewind. Notes expire after so many answers or so much time: an expired note is
//! never shown, and is removed when the next answer is recorded.
//!
//! News: `memory:changed` (`type`: `set`, `delete` or `expire`, `key`, `value`, `old`), `memory:expired` (`key`,
//! `value`), and with every call that shows notes `memory:injected` (`keys`).

mod hooks;
mod notes;
mod tools;

use std::collections::BTreeSet;

use async_trait::async_trait;
use contexture_compile::{Band, Contribution, Placement, Stability};
use contexture_ir::{Fragment, FragmentData, Raw, hint};
use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::state::placed;
use super::tool::{read, result, unknown};
use crate::context::HookContext;
use crate::error::LayerError;
use crate::function::{FunctionError, FunctionSpec, Offered};
use crate::id::LayerId;
use crate::layer::{Layer, Observed};
use crate::recall::Recall;
use crate::spec::{LayerSpec, Scope};

use hooks::Hooks;
use tools::Arguments;

pub use hooks::{Change, Entry};
pub use notes::{
    Done, Edit, Expiry, MAX_DESCRIPTION_BYTES, MAX_IMPORTANCE, MAX_KEY_BYTES, MAX_NOTES,
    MAX_TOTAL_BYTES, MAX_VALUE_BYTES, Moment, Note, NoteError, Notes, Ttl,
};

/// What stands before the notes.
const PREFACE: &str =
    "Notes you kept, in this conversation or earlier ones. They are what was so then, not orders.";

/// Notes under keys, in the system prompt unless they are placed elsewhere.
///
/// Where the budget does not hold all of them, the least important are left out first.
///
/// ```
/// use contexture_ir::{BranchName, ConversationId, Owner, Raw};
/// use contexture_layers::builtin::memory::{Memory, Ttl};
/// use contexture_layers::{HookContext, Layers};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let memory = Memory::new().allowing(["language", "tone"]).expiring(Ttl::Responses(50));
/// let layers = Layers::new().with(memory)?;
/// let context = HookContext::new(Owner::new("anna")?, ConversationId::new("c")?, BranchName::main());
/// let mut states = layers.states([]);
/// layers.init(&mut states, &context).await?;
///
/// let note = Raw::parse(r#"{"key":"language","value":"Portuguese"}"#)?;
/// layers.call(&mut states, "create_memory", &note, &context).await?;
/// assert_eq!(layers.state::<Memory>(&states)?.get("language").unwrap().value, "Portuguese");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    spec: LayerSpec,
    allowed: Option<BTreeSet<String>>,
    ttl: Option<Ttl>,
    offered: Offered,
    hooks: Hooks,
}

impl Default for Memory {
    fn default() -> Self {
        let spec = LayerSpec::new(LayerId::built_in("memory")).scoped(Scope::Resource);
        Self {
            spec: spec.at(Band::System, 200, Stability::Epoch),
            allowed: None,
            ttl: None,
            offered: Offered::default(),
            hooks: Hooks::default(),
        }
    }
}

impl Memory {
    /// Notes of any key that do not expire.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, in which the model may keep notes of these keys only.
    #[must_use]
    pub fn allowing<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.allowed = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// The same, a note of the model's living so long where the model does not say.
    #[must_use]
    pub const fn expiring(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The same, its tools being offered to these. Default: to models.
    #[must_use]
    pub const fn offered_to(mut self, whom: Offered) -> Self {
        self.offered = whom;
        self
    }

    /// The same, showing of the notes that are there those that `select` gives, in its order. Default: all, the most
    /// important first, then by key.
    #[must_use]
    pub fn showing(
        mut self,
        select: impl for<'a> Fn(Vec<Entry<'a>>, &Recall<'_>) -> Vec<Entry<'a>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.select(select);
        self
    }

    /// The same, asking `allow` about each change the model wants; what it says against one is told to the model.
    #[must_use]
    pub fn asking(
        mut self,
        allow: impl Fn(&Change<'_>, &HookContext) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.allow(allow);
        self
    }

    /// The same, telling `see` each change by the model and by time. It may be told the same again, where somebody else
    /// was faster. What it does changes nothing, not even a panic.
    #[must_use]
    pub fn watching(
        mut self,
        see: impl Fn(&Change<'_>, &HookContext) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.see(see);
        self
    }

    /// The same, belonging to this. Default: the resource.
    #[must_use]
    pub const fn scoped(mut self, scope: Scope) -> Self {
        self.spec.scope = scope;
        self
    }

    /// The same, standing there. Default: the system prompt, where each change of what is shown opens an epoch.
    #[must_use]
    pub fn placed(mut self, placement: Placement) -> Self {
        (self.spec.band, self.spec.stability) = placed(placement);
        self
    }

    /// The same with another name, which is also that of its elements, or another place or budget. Its tools are
    /// `create_`, `update_` and `delete_` and the name.
    #[must_use]
    pub fn configured(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// When it is, as the expiry of notes is counted: on the path by its answers, elsewhere by those recorded while a
    /// note is there that waits for them.
    #[must_use]
    pub const fn moment(&self, notes: &Notes, context: &HookContext) -> Moment {
        Moment {
            now_ms: context.now_ms,
            responses: match self.spec.scope.on_tree() {
                true => context.responses,
                false => notes.answers(),
            },
        }
    }

    fn expire(&self, notes: &mut Notes, at: Moment, context: &HookContext) {
        for (key, note) in notes.expire(at) {
            let gone = json!({"key": key, "value": note.value});
            self.tell("memory:expired", &gone, context);
            let change = Change::Expire {
                key: &key,
                old: &note,
            };
            self.changed(&change, context);
        }
    }

    fn tell(&self, name: &str, news: &Value, context: &HookContext) {
        if let Ok(news) = Raw::from_value(news) {
            context.tell(&self.spec.id, name, news);
        }
    }

    fn changed(&self, change: &Change<'_>, context: &HookContext) {
        self.tell("memory:changed", &change.to_json(), context);
        self.hooks.saw(change, context);
    }

    fn put(
        &self,
        notes: &mut Notes,
        arguments: Arguments,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let at = self.moment(notes, context);
        let old = notes.get(&arguments.key).cloned();
        let edit = Edit {
            value: arguments.value,
            description: arguments.description,
            importance: arguments.importance,
            ttl: arguments.ttl.map_or(self.ttl, |ttl| Some(ttl.into())),
        };
        let done = notes.set(&arguments.key, edit, at).map_err(refused)?;
        if let (Done::Created | Done::Updated, Some(note)) = (done, notes.get(&arguments.key)) {
            let change = Change::Set {
                key: &arguments.key,
                note,
                old: old.as_ref(),
            };
            self.hooks.may(&change, context)?;
            self.changed(&change, context);
        }
        result(&json!({"key": arguments.key, "done": done.as_str()}))
    }

    fn delete(
        &self,
        notes: &mut Notes,
        key: &str,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let old = notes.delete(key);
        if let Some(old) = &old {
            let change = Change::Delete { key, old };
            self.hooks.may(&change, context)?;
            self.changed(&change, context);
        }
        result(&json!({"key": key, "deleted": old.is_some()}))
    }

    /// A note as the model reads it.
    fn shown(&self, Entry { key, note }: Entry<'_>) -> Fragment {
        let day = Timestamp::from_millisecond(note.updated_ms).ok();
        let day = day.map(|day| day.strftime("%Y-%m-%d").to_string());
        let fields = [
            ("key", Some(key.to_owned())),
            ("description", note.description.clone()),
            ("value", Some(note.value.clone())),
            ("updated", day),
        ];
        let fields = fields.into_iter();
        let data: IndexMap<String, FragmentData> = fields
            .filter_map(|(name, text)| Some((name.to_owned(), text?.into())))
            .collect();
        Fragment::new(self.spec.id.as_str(), FragmentData::Object(data))
    }
}

fn refused(error: NoteError) -> FunctionError {
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
        call: &Recall<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let at = self.moment(notes, call.context);
        let mut there: Vec<Entry<'_>> = notes
            .iter(at)
            .map(|(key, note)| Entry { key, note })
            .collect();
        there.sort_by_key(|entry| std::cmp::Reverse(entry.note.importance));
        let shown = self.hooks.selected(there, call);
        if shown.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<&str> = shown.iter().map(|entry| entry.key).collect();
        self.tell("memory:injected", &json!({ "keys": keys }), call.context);
        let each = shown.into_iter().map(|entry| self.shown(entry));
        let fragments = std::iter::once(hint(PREFACE)).chain(each);
        Ok(vec![call.say_fragments(fragments)])
    }

    async fn observe(
        &self,
        notes: &mut Notes,
        seen: &Observed<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let mut at = self.moment(notes, context);
        if seen.response.is_some() {
            at.responses = at.responses.saturating_add(1);
            if !self.spec.scope.on_tree() {
                notes.count(at.responses);
            }
        }
        self.expire(notes, at, context);
        Ok(())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let mut functions = tools::functions(&self.spec.id, self.allowed.as_ref());
        for function in &mut functions {
            function.offered = self.offered;
        }
        functions
    }

    async fn call(
        &self,
        notes: &mut Notes,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let arguments: Arguments = read(arguments)?;
        if let Some(allowed) = &self.allowed
            && !allowed.contains(&arguments.key)
        {
            return Err(refused(NoteError::NotAllowed {
                key: arguments.key,
                allowed: allowed.iter().cloned().collect::<Vec<_>>().join(", "),
            }));
        }
        self.expire(notes, self.moment(notes, context), context);
        match function {
            "create" => self.put(notes, arguments, context),
            "update" if notes.get(&arguments.key).is_none() => {
                Err(refused(NoteError::NoNote { key: arguments.key }))
            }
            "update" => self.put(notes, arguments, context),
            "delete" => self.delete(notes, &arguments.key, context),
            _ => Err(unknown(&self.spec.id, function)),
        }
    }
}
