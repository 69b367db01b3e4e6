//! Takes a call to the tool that it means, and asks the policy whether it may run.
//!
//! Four routes lead to a tool: its own name, the action of a namespace, a loaded toolkit, and the loader of toolkits. All
//! end here, and the policy decides at the end of each, about the tool that was reached.
//!
//! A tool that is registered but was not offered can still be called: the model may have seen it earlier. The policy says
//! what may run, the choice only what is shown. Tools of a toolkit that is not loaded are refused with the advice to load it.

use contexture_ir::Fields;
use contexture_text::case_folded;

use crate::calls::arguments::{Arguments, ArgumentsError, parse_arguments};
use crate::calls::parse::Call;
use crate::names::{LOADER, Name, ToolId};
use crate::policy::{Decision, Policy, PolicyVerdict};
use crate::registry::{
    ACTION, ARGUMENTS, GroupKind, LOADER_ARGUMENT, LoadedToolkits, Registry, RegistryEntry,
    ToolGroup,
};
#[cfg(feature = "validate")]
use crate::schema::{ArgumentFault, SchemaError};
use contexture_text::similar_by_letter_pairs;

/// How a call reached its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// By its own name.
    Direct,
    /// As an action of this namespace.
    Namespace(Name),
    /// By its own name, from this toolkit.
    Toolkit(Name),
    /// It asks for this toolkit: note it as [`LoadedToolkits`], answer with what is there now.
    Load(Name),
}

/// A call that may run, or about which a person is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The tool; [`LOADER`] for [`Route::Load`].
    pub tool: ToolId,
    /// The tool's own arguments.
    pub arguments: Arguments,
    /// How it was reached.
    pub route: Route,
    /// Whether it runs at once or after asking; never [`PolicyVerdict::Deny`].
    pub verdict: PolicyVerdict,
}

/// Why a call reaches no tool. The texts are fit to be shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// There is no tool of this name.
    #[error("unknown tool {name:?}{}", Similar(similar))]
    UnknownTool {
        /// The name called.
        name: String,
        /// The most similar names.
        similar: Vec<String>,
    },
    /// A group was named that does not exist.
    #[error("unknown namespace {name:?}; available: {}", List(available))]
    UnknownNamespace {
        /// The name called.
        name: String,
        /// The groups there are.
        available: Vec<String>,
    },
    /// The namespace has no such action.
    #[error(
        "unknown action {action:?} in the namespace {namespace}; available: {}",
        List(available)
    )]
    UnknownAction {
        /// Name of the namespace.
        namespace: Name,
        /// The action asked for; empty if none was.
        action: String,
        /// The actions there are.
        available: Vec<String>,
    },
    /// There is no such toolkit.
    #[error("unknown toolkit {toolkit:?}; available: {}", List(available))]
    UnknownToolkit {
        /// The toolkit asked for; empty if none was.
        toolkit: String,
        /// The toolkits there are.
        available: Vec<String>,
    },
    /// The tool belongs to a toolkit that is not loaded.
    #[error("{tool} belongs to the toolkit {toolkit}, which is not loaded; call {LOADER} first")]
    NotLoaded {
        /// Id of the tool.
        tool: ToolId,
        /// Name of its toolkit.
        toolkit: Name,
    },
    /// The policy denies the tool.
    #[error("{tool} is denied{}", ByRule(rule))]
    Denied {
        /// Id of the tool.
        tool: ToolId,
        /// The pattern or mark of the rule that decided; absent if the policy denies what no rule is about.
        rule: Option<String>,
    },
    /// The arguments cannot be read.
    #[error("{tool}: {source}")]
    Arguments {
        /// The tool, or the namespace, that was called.
        tool: String,
        /// What is wrong.
        source: ArgumentsError,
    },
}

/// Names in a list, or the word for none.
struct List<'a>(&'a [String]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.0.join(", "))
    }
}

struct Similar<'a>(&'a [String]);

impl std::fmt::Display for Similar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; similar: {}", self.0.join(", "))
    }
}

struct ByRule<'a>(&'a Option<String>);

impl std::fmt::Display for ByRule<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(rule) => write!(f, " by the rule {rule:?}"),
            None => f.write_str(", for no rule allows it"),
        }
    }
}

impl Registry {
    /// Finds the tool that a call means, and asks the policy whether it may run.
    ///
    /// `loaded` are the toolkits loaded so far; for a target that searches tools itself, [`Registry::all_loaded`].
    pub fn resolve(
        &self,
        call: &Call,
        policy: &Policy,
        loaded: &LoadedToolkits,
    ) -> Result<Resolved, ResolveError> {
        // A group named by the provider wins: it says more than the name alone, which may be taken by a flat
        // tool too.
        if let Some(group) = &call.group {
            return self.resolve_in_group(group, call, policy, loaded);
        }
        // A tool before a namespace of the same name cannot happen, since both share one scope; the order only
        // saves a lookup.
        if let Some(entry) = self.top_level_entry(&call.name) {
            return self.resolve_direct(entry, call, policy, loaded);
        }
        match self.exact_group(&call.name) {
            Some(group) if group.kind == GroupKind::Namespace => {
                self.resolve_action(group, call, policy)
            }
            // Last: the loader is reserved, so no tool or group can have shadowed it.
            _ if call.name == LOADER => self.resolve_load(call, policy),
            _ => Err(self.unknown_tool(&call.name)),
        }
    }

    /// Whether a model may be offered a tool of this name: a tool that stands outside namespaces, a namespace, or the loader
    /// of toolkits.
    ///
    /// ```
    /// use contexture_tools::{Registry, ToolGroup};
    ///
    /// let mut registry = Registry::new();
    /// registry.register_group(ToolGroup::namespace("mail", "Reads and sends mail."))?;
    /// assert!(registry.offers_name("mail"));
    /// assert!(!registry.offers_name("calendar"));
    /// # Ok::<(), contexture_tools::ToolError>(())
    /// ```
    #[must_use]
    pub fn offers_name(&self, name: &str) -> bool {
        let group = self.exact_group(name);
        let mut groups = self.groups();
        self.top_level_entry(name).is_some()
            || group.is_some_and(|group| group.kind == GroupKind::Namespace)
            || (name == LOADER && groups.any(|group| group.kind == GroupKind::Toolkit))
    }

    /// What is wrong with a call's arguments by its tool's schema; none for [`Route::Load`], which is checked already.
    #[cfg(feature = "validate")]
    pub fn check_arguments(&self, resolved: &Resolved) -> Result<Vec<ArgumentFault>, SchemaError> {
        // The loader is no registered tool; its one argument was checked while resolving.
        let Some(entry) = self.tool_entry(&resolved.tool) else {
            return Ok(Vec::new());
        };
        let checker = entry.schema_validator().map_err(Clone::clone)?;
        checker.check_arguments(&resolved.arguments.raw)
    }

    // The lookup folds case to find duplicates, but a call must name the group exactly: the model saw one
    // spelling only.
    fn exact_group(&self, name: &str) -> Option<&ToolGroup> {
        self.group(name).filter(|group| group.name == *name)
    }

    fn resolve_in_group(
        &self,
        name: &str,
        call: &Call,
        policy: &Policy,
        loaded: &LoadedToolkits,
    ) -> Result<Resolved, ResolveError> {
        let Some(group) = self.exact_group(name) else {
            return Err(self.unknown_namespace(name));
        };
        let id = ToolId::in_group(group.name.clone(), &call.name);
        let Some(entry) = self.tool_entry(&id) else {
            return Err(self.unknown_action(group, &call.name));
        };
        match group.kind {
            // A provider's namespace around a toolkit's tool is the same route as its bare name, loading
            // included.
            GroupKind::Toolkit => self.resolve_direct(entry, call, policy, loaded),
            GroupKind::Namespace => {
                // The policy is asked before the arguments are read: what is denied gets that answer, however
                // broken the arguments.
                let verdict = check_permission(policy.decide_tool(&entry.tool), &entry.id)?;
                let arguments = parse_call_arguments(&entry.id.to_string(), &call.arguments)?;
                let route = Route::Namespace(group.name.clone());
                Ok(resolved_call(entry, arguments, route, verdict))
            }
        }
    }

    fn resolve_direct(
        &self,
        entry: &RegistryEntry,
        call: &Call,
        policy: &Policy,
        loaded: &LoadedToolkits,
    ) -> Result<Resolved, ResolveError> {
        let verdict = check_permission(policy.decide_tool(&entry.tool), &entry.id)?;
        let route = match &entry.id.group {
            None => Route::Direct,
            Some(kit) if loaded.contains(kit.as_str()) => Route::Toolkit(kit.clone()),
            Some(kit) => {
                // Refused even if policy allows it: an unloaded tool was never described to the model, so its
                // arguments are guesses.
                return Err(ResolveError::NotLoaded {
                    tool: entry.id.clone(),
                    toolkit: kit.clone(),
                });
            }
        };
        let arguments = parse_call_arguments(&entry.id.to_string(), &call.arguments)?;
        Ok(resolved_call(entry, arguments, route, verdict))
    }

    fn resolve_action(
        &self,
        group: &ToolGroup,
        call: &Call,
        policy: &Policy,
    ) -> Result<Resolved, ResolveError> {
        let outer = parse_call_arguments(group.name.as_str(), &call.arguments)?;
        let fields = Fields::parse(outer.raw.get()).unwrap_or_default();
        // The last of repeated keys counts, as for every other reader of these arguments.
        let last = |name: &str| {
            let found = fields.iter().filter(|(key, _)| *key == name).last();
            found.map(|(_, value)| value.get())
        };
        let action = last(ACTION).and_then(|text| serde_json::from_str::<String>(text).ok());
        // No action reads as an empty one, so that the error can list what there is.
        let action = action.unwrap_or_default();
        let id = ToolId::in_group(group.name.clone(), &action);
        let Some(entry) = self.tool_entry(&id) else {
            return Err(self.unknown_action(group, &action));
        };
        let verdict = check_permission(policy.decide_tool(&entry.tool), &entry.id)?;
        let mut arguments =
            parse_call_arguments(&id.to_string(), last(ARGUMENTS).unwrap_or_default())?;
        // Places in the outer text come first: they were read first.
        // Arguments of an action are a document of their own within the outer one.
        arguments.issues.splice(0..0, outer.issues);
        let route = Route::Namespace(group.name.clone());
        Ok(resolved_call(entry, arguments, route, verdict))
    }

    fn resolve_load(&self, call: &Call, policy: &Policy) -> Result<Resolved, ResolveError> {
        let arguments = parse_call_arguments(LOADER, &call.arguments)?;
        let fields = Fields::parse(arguments.raw.get()).unwrap_or_default();
        let asked = fields.get(&[LOADER_ARGUMENT]);
        let asked = asked.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
        let asked = asked.unwrap_or_default();
        // Toolkits are found without regard to case: the name stands in prose, and the loader's schema is not
        // always enforced.
        let wanted = case_folded(asked.trim());
        let mut kits = self.groups_of(GroupKind::Toolkit);
        let Some(kit) = kits.find(|kit| kit.name.case_folded() == wanted) else {
            let kits = self.groups_of(GroupKind::Toolkit);
            return Err(ResolveError::UnknownToolkit {
                toolkit: asked,
                available: kits.map(|kit| kit.name.to_string()).collect(),
            });
        };
        let tool = ToolId::flat(LOADER);
        let verdict = check_permission(policy.decide_name(&tool), &tool)?;
        Ok(Resolved {
            tool,
            arguments,
            route: Route::Load(kit.name.clone()),
            verdict,
        })
    }

    fn unknown_action(&self, group: &ToolGroup, action: &str) -> ResolveError {
        let members = self.group_members(group);
        ResolveError::UnknownAction {
            namespace: group.name.clone(),
            action: action.to_owned(),
            available: members.map(|entry| entry.id.name.to_string()).collect(),
        }
    }

    fn unknown_namespace(&self, name: &str) -> ResolveError {
        ResolveError::UnknownNamespace {
            name: name.to_owned(),
            available: self.groups().map(|group| group.name.to_string()).collect(),
        }
    }

    fn unknown_tool(&self, name: &str) -> ResolveError {
        let tools = self.tool_entries().filter(|entry| {
            let group = entry.id.group.as_ref();
            let group = group.and_then(|group| self.group(group.as_str()));
            // Tools of a namespace are left out: their bare names cannot be called, so suggesting them would
            // mislead.
            group.is_none_or(|group| group.kind == GroupKind::Toolkit)
        });
        let namespaces = self.groups_of(GroupKind::Namespace);
        let names = tools
            .map(|entry| entry.id.name.as_str())
            .chain(namespaces.map(|group| group.name.as_str()));
        ResolveError::UnknownTool {
            // A model may put a whole paragraph where the name belongs; errors stay short.
            name: name.chars().take(200).collect(),
            similar: similar_by_letter_pairs(name, names),
        }
    }
}

fn resolved_call(
    entry: &RegistryEntry,
    arguments: Arguments,
    route: Route,
    verdict: PolicyVerdict,
) -> Resolved {
    Resolved {
        tool: entry.id.clone(),
        arguments,
        route,
        verdict,
    }
}

fn parse_call_arguments(tool: &str, text: &str) -> Result<Arguments, ResolveError> {
    parse_arguments(text).map_err(|source| ResolveError::Arguments {
        tool: tool.to_owned(),
        source,
    })
}

/// Returns the verdict of a decision unless it is to deny, which is an error.
fn check_permission(decision: Decision<'_>, tool: &ToolId) -> Result<PolicyVerdict, ResolveError> {
    match decision.verdict {
        PolicyVerdict::Deny => Err(ResolveError::Denied {
            tool: tool.clone(),
            rule: decision.rule.map(|rule| rule.target.to_string()),
        }),
        verdict => Ok(verdict),
    }
}
