//! The registry of tools and groups.
//!
//! Kept in order of lower-cased names, whatever the order of registration, so that two processes that register the same
//! tools offer the same bytes. A clone is a pointer; a change to a shared registry copies it once.
//!
//! Names: flat tools, tools of toolkits and namespaces share one scope, because the model may see them side by side;
//! tools of a namespace have that namespace as their scope. Names that differ in case only are duplicates.
//!
//! Not here: what is offered ([`crate::offer`]) and what a call means ([`crate::calls::resolve`]).

mod definition;
mod index;
mod namespace;
mod tool;
mod toolkit;

pub use index::{Index, IndexedUnit, Ranked};
pub use namespace::ArgsSchema;
pub use tool::{GroupKind, PropertyOrder, Tool, ToolGroup};
pub use toolkit::LoadedToolkits;

pub(crate) use definition::nests_at_most;
pub(crate) use namespace::{ACTION, ARGUMENTS, namespace_tool};
pub(crate) use toolkit::LOADER_ARGUMENT;

use definition::{canonicalize_tool, check_name};
use index::IndexDocument;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ToolError;
use contexture_text::case_folded;

use crate::names::{LOADER, Name, ToolId};
#[cfg(feature = "validate")]
use crate::schema::{SchemaError, SchemaValidator};

/// Tools and groups, by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    inner: Arc<RegistryInner>,
}

#[derive(Clone, Debug, Default)]
struct RegistryInner {
    groups: BTreeMap<String, Arc<GroupEntry>>,
    tools: BTreeMap<RegistryKey, Arc<RegistryEntry>>,
    index: OnceLock<Arc<Index>>,
}

/// Where a tool's name is unique: the namespace, folded, or empty; then the name, folded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RegistryKey {
    scope: String,
    name: String,
}

#[derive(Debug)]
pub(crate) struct GroupEntry {
    pub(crate) group: ToolGroup,
    source: Option<Name>,
}

#[derive(Debug)]
pub(crate) struct RegistryEntry {
    pub(crate) tool: Tool,
    pub(crate) id: ToolId,
    source: Option<Name>,
    #[cfg(feature = "validate")]
    validator: OnceLock<Result<SchemaValidator, SchemaError>>,
}

#[cfg(feature = "validate")]
impl RegistryEntry {
    /// Returns the validator of its arguments, compiled when first needed.
    pub(crate) fn schema_validator(&self) -> Result<&SchemaValidator, &SchemaError> {
        // Lazily, because a registry may hold a thousand schemas of which a conversation calls three.
        let compile = || {
            let function = self.tool.as_function();
            let schema = function.and_then(|function| function.parameters.as_ref());
            schema.map_or_else(|| Ok(SchemaValidator::accept_all()), SchemaValidator::new)
        };
        self.validator.get_or_init(compile).as_ref()
    }
}

/// Groups and tools that come and go together: an MCP server's, a plugin's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Groups to register first.
    pub groups: Vec<ToolGroup>,
    /// The tools; they may belong to these groups or to earlier ones.
    pub tools: Vec<Tool>,
}

impl Registry {
    /// A registry without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. Its definition is checked and put into canonical form.
    pub fn register(&mut self, tool: Tool) -> Result<ToolId, ToolError> {
        self.add_tool(tool, None)
    }

    /// Adds a group without tools.
    pub fn register_group(&mut self, group: ToolGroup) -> Result<(), ToolError> {
        self.add_group(group, None)
    }

    /// Adds a batch under the name of its source: all of it, or nothing.
    pub fn register_batch(&mut self, source: &str, batch: Batch) -> Result<(), ToolError> {
        // Work on a clone, which is a pointer until the first change: an error in the middle leaves this
        // registry as it was.
        let mut next = self.clone();
        let source = Name::from(source);
        // Groups first, because the batch's tools may belong to them.
        for group in batch.groups {
            next.add_group(group, Some(source.clone()))?;
        }
        for tool in batch.tools {
            next.add_tool(tool, Some(source.clone()))?;
        }
        *self = next;
        Ok(())
    }

    /// Puts a tool in the place of the one of the same group and name, and returns that one; adds it if there is none.
    /// The source stays that of the earlier one.
    pub fn replace(&mut self, tool: Tool) -> Result<Option<Tool>, ToolError> {
        let id = tool.id();
        let Some(old) = self.tool_entry(&id).cloned() else {
            return self.register(tool).map(|_| None);
        };
        let mut next = self.clone();
        // Taken out first, or the name would count as taken by the tool that is being replaced.
        next.unregister(&id);
        // The earlier source stays, so that a batch still takes its replaced tools away.
        next.add_tool(tool, old.source.clone())?;
        *self = next;
        Ok(Some(old.tool.clone()))
    }

    /// Takes a tool away and returns it.
    pub fn unregister(&mut self, id: &ToolId) -> Option<Tool> {
        let key = self.tool_entry(id).map(|entry| self.tool_key(&entry.id))?;
        let entry = self.inner_mut().tools.remove(&key)?;
        Some(entry.tool.clone())
    }

    /// Takes a group away with all its tools, and returns the tools' ids.
    ///
    /// ```
    /// use contexture_tools::{Registry, ToolGroup};
    ///
    /// let mut registry = Registry::new();
    /// registry.register_group(ToolGroup::namespace("mail", "Reads and sends mail."))?;
    /// assert!(registry.unregister_group("mail").is_empty());
    /// assert!(registry.register_group(ToolGroup::namespace("mail", "Another one.")).is_ok());
    /// # Ok::<(), contexture_tools::ToolError>(())
    /// ```
    pub fn unregister_group(&mut self, name: &str) -> Vec<ToolId> {
        let Some(group) = self.group(name) else {
            return Vec::new();
        };
        // Copied out, since the borrow of the group ends when tools are removed.
        let (folded, name) = (group.name.case_folded(), group.name.clone());
        let gone = self.remove_tools(|entry| entry.id.group.as_ref() == Some(&name));
        self.inner_mut().groups.remove(&folded);
        gone
    }

    /// Takes away what was registered in batches of this source, and returns the tools' ids. A group of the source
    /// goes with all its tools, whoever registered those.
    pub fn unregister_source(&mut self, source: &str) -> Vec<ToolId> {
        let of_source = |from: &Option<Name>| from.as_ref().is_some_and(|from| *from == source);
        let groups = self.inner.groups.values();
        let groups: Vec<Name> = groups
            .filter(|entry| of_source(&entry.source))
            .map(|entry| entry.group.name.clone())
            .collect();
        // The source's own tools first; then its groups take tools of others along, for a tool cannot outlive
        // its group.
        let mut gone = self.remove_tools(|entry| of_source(&entry.source));
        for group in groups {
            gone.extend(self.unregister_group(group.as_str()));
        }
        // Two sweeps gave two sorted halves; callers compare the list as a whole.
        gone.sort();
        gone
    }

    /// The tool of this group and name, as written.
    #[must_use]
    pub fn get(&self, id: &ToolId) -> Option<&Tool> {
        self.tool_entry(id).map(|entry| &entry.tool)
    }

    /// The group of this name; case does not matter.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&ToolGroup> {
        self.inner
            .groups
            .get(&case_folded(name))
            .map(|entry| &entry.group)
    }

    /// All tools, by namespace (flat ones and those of toolkits first), then by lower-cased name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.inner.tools.values().map(|entry| &entry.tool)
    }

    /// All groups, by lower-cased name.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &ToolGroup> {
        self.inner.groups.values().map(|entry| &entry.group)
    }

    /// The names of the sources of batches.
    #[must_use]
    pub fn sources(&self) -> Vec<Name> {
        let tools = self.inner.tools.values().map(|entry| &entry.source);
        let groups = self.inner.groups.values().map(|entry| &entry.source);
        let mut sources: Vec<Name> = tools.chain(groups).flatten().cloned().collect();
        sources.sort();
        sources.dedup();
        sources
    }

    /// The index by which tools are chosen for a task; built when first asked for, shared by clones.
    #[must_use]
    pub fn index(&self) -> &Index {
        self.inner
            .index
            .get_or_init(|| Arc::new(Index::from_documents(self.index_documents())))
    }

    pub(crate) fn tool_entries(&self) -> impl Iterator<Item = &Arc<RegistryEntry>> {
        self.inner.tools.values()
    }

    pub(crate) fn tool_entry(&self, id: &ToolId) -> Option<&Arc<RegistryEntry>> {
        let entry = self.inner.tools.get(&self.tool_key(id))?;
        // The key folds case, the caller's id does not: a tool called by another spelling is not this tool.
        (entry.id == *id).then_some(entry)
    }

    /// What the model sees under this name: a flat tool or one of a toolkit.
    pub(crate) fn top_level_entry(&self, name: &str) -> Option<&Arc<RegistryEntry>> {
        let key = RegistryKey {
            scope: String::new(),
            name: case_folded(name),
        };
        let entry = self.inner.tools.get(&key)?;
        (entry.id.name == *name).then_some(entry)
    }

    /// The tools of a group, by lower-cased name.
    pub(crate) fn group_members<'r>(
        &'r self,
        group: &'r ToolGroup,
    ) -> impl Iterator<Item = &'r Arc<RegistryEntry>> {
        // Tools of a namespace have a scope of their own; tools of a toolkit stand among the flat ones.
        let scope = match group.kind {
            GroupKind::Namespace => group.name.case_folded(),
            GroupKind::Toolkit => String::new(),
        };
        // An empty name sorts before every other, so the range begins with the scope's first tool.
        let first = RegistryKey {
            scope: scope.clone(),
            name: String::new(),
        };
        let tools = self.inner.tools.range(first..);
        tools
            .take_while(move |(key, _)| key.scope == scope)
            .map(|(_, entry)| entry)
            .filter(|entry| entry.id.group.as_ref() == Some(&group.name))
    }

    /// Groups of one kind.
    pub(crate) fn groups_of(&self, kind: GroupKind) -> impl Iterator<Item = &ToolGroup> {
        self.groups().filter(move |group| group.kind == kind)
    }

    /// What is ranked: flat functions in the registry's order, then namespaces. A provider's own tools have no words.
    fn index_documents(&self) -> impl Iterator<Item = IndexDocument<'_>> {
        // The order here is the numbering that offers use for units.
        let flat = self.tools().filter(|tool| tool.group.is_none());
        let flat = flat.filter(|tool| tool.as_function().is_some());
        let groups = self.groups_of(GroupKind::Namespace).map(|group| {
            let members = self.group_members(group).map(|entry| &entry.tool);
            IndexDocument::Namespace(group, members.collect())
        });
        flat.map(IndexDocument::Tool).chain(groups)
    }

    // Every change goes through here, which is what keeps the index from being stale.
    fn inner_mut(&mut self) -> &mut RegistryInner {
        let inner = Arc::make_mut(&mut self.inner);
        inner.index = OnceLock::new();
        inner
    }

    fn tool_key(&self, id: &ToolId) -> RegistryKey {
        let group = id.group.as_ref().map(Name::case_folded);
        let scope = group.filter(|group| {
            // Only namespaces are scopes. An unknown group folds into the flat scope, where registration
            // refuses it.
            let known = self.inner.groups.get(group);
            known.is_some_and(|entry| entry.group.kind == GroupKind::Namespace)
        });
        RegistryKey {
            scope: scope.unwrap_or_default(),
            name: id.name.case_folded(),
        }
    }

    fn remove_tools(&mut self, gone: impl Fn(&RegistryEntry) -> bool) -> Vec<ToolId> {
        let mut removed = Vec::new();
        self.inner_mut().tools.retain(|_, entry| {
            let gone = gone(entry);
            if gone {
                removed.push(entry.id.clone());
            }
            !gone
        });
        removed
    }

    fn add_tool(&mut self, mut tool: Tool, source: Option<Name>) -> Result<ToolId, ToolError> {
        if let Some(name) = tool.group.clone() {
            let Some(group) = self.group(name.as_str()) else {
                return Err(ToolError::UnknownGroup {
                    tool: tool.id(),
                    group: name,
                });
            };
            // Written as the group is registered, so that ids do not differ by the caller's case.
            tool.group = Some(group.name.clone());
        }
        let tool = canonicalize_tool(tool)?;
        let id = tool.id();
        let key = self.tool_key(&id);
        // In the flat scope a tool may clash with groups and the loader as well; within a namespace only with
        // its siblings.
        if key.scope.is_empty() {
            self.check_free(&id.name)?;
        } else if let Some(other) = self.inner.tools.get(&key) {
            return Err(duplicate_error(&id.name, format!("the tool {}", other.id)));
        }
        let entry = RegistryEntry {
            tool,
            id: id.clone(),
            source,
            #[cfg(feature = "validate")]
            validator: OnceLock::new(),
        };
        self.inner_mut().tools.insert(key, Arc::new(entry));
        Ok(id)
    }

    fn add_group(&mut self, group: ToolGroup, source: Option<Name>) -> Result<(), ToolError> {
        check_name("group", group.name.as_str())?;
        match group.kind {
            // A namespace is shown to the model under its name, so it competes with tools. A toolkit's name is
            // only ever an argument.
            GroupKind::Namespace => self.check_free(&group.name)?,
            GroupKind::Toolkit => self.check_group_free(&group.name)?,
        }
        let entry = GroupEntry { group, source };
        let folded = entry.group.name.case_folded();
        self.inner_mut().groups.insert(folded, Arc::new(entry));
        Ok(())
    }

    /// Whether the model may be shown this name.
    fn check_free(&self, name: &Name) -> Result<(), ToolError> {
        let folded = name.case_folded();
        // Folded, so that `Load_Toolkit` is refused too.
        if folded == LOADER {
            return Err(ToolError::Reserved { name: name.clone() });
        }
        let key = RegistryKey {
            scope: String::new(),
            name: folded,
        };
        if let Some(other) = self.inner.tools.get(&key) {
            return Err(duplicate_error(name, format!("the tool {}", other.id)));
        }
        self.check_group_free(name)
    }

    fn check_group_free(&self, name: &Name) -> Result<(), ToolError> {
        match self.group(name.as_str()) {
            Some(group) => Err(duplicate_error(name, format!("the group {}", group.name))),
            None => Ok(()),
        }
    }
}

fn duplicate_error(name: &Name, taken_by: String) -> ToolError {
    ToolError::Duplicate {
        name: name.clone(),
        taken_by,
    }
}

impl PartialEq for Registry {
    fn eq(&self, other: &Self) -> bool {
        // Clones share the pointer; comparing what is stored is for registries built apart.
        Arc::ptr_eq(&self.inner, &other.inner)
            || StoredRegistry::from_registry(self) == StoredRegistry::from_registry(other)
    }
}

/// A registry as stored; read back, each part is checked again.
#[derive(PartialEq, Serialize, Deserialize)]
struct StoredRegistry {
    groups: Vec<Sourced<ToolGroup>>,
    tools: Vec<Sourced<Tool>>,
}

/// Something and the batch it came in.
#[derive(PartialEq, Serialize, Deserialize)]
struct Sourced<T> {
    what: T,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Name>,
}

impl StoredRegistry {
    fn from_registry(registry: &Registry) -> Self {
        let groups = registry.inner.groups.values();
        Self {
            groups: groups
                .map(|entry| Sourced {
                    what: entry.group.clone(),
                    source: entry.source.clone(),
                })
                .collect(),
            tools: registry
                .tool_entries()
                .map(|entry| Sourced {
                    what: entry.tool.clone(),
                    source: entry.source.clone(),
                })
                .collect(),
        }
    }
}

impl Serialize for Registry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredRegistry::from_registry(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Registry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredRegistry::deserialize(deserializer)?;
        // Through the same checks as registration: a stored registry may come from another version or another
        // hand.
        let mut registry = Self::new();
        for group in stored.groups {
            let added = registry.add_group(group.what, group.source);
            added.map_err(serde::de::Error::custom)?;
        }
        for tool in stored.tools {
            let added = registry.add_tool(tool.what, tool.source);
            added.map_err(serde::de::Error::custom)?;
        }
        Ok(registry)
    }
}
