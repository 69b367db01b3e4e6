//! The offer of one call: the tools that a choice keeps, in a stable order.
//!
//! The first offer is sorted by case-folded name. It is remembered as a [`Selection`], and later offers for the same
//! choice keep its tools in their places: tools added since may rank higher for a task, but they push nothing out, and
//! new tools come last. Only another choice decides anew, and even then the tools that stay keep their order. So an
//! offer begins with the bytes of the earlier offers for the same choice, as long as nothing is unregistered, replaced
//! or put into a namespace.
//!
//! Not here: writing tools in a provider's format (`contexture-wire`).

mod exclusion;
mod tool_choice;
mod tool_search;

pub use exclusion::{ExcludedTool, ExclusionReason, ExclusionReasons};
pub use tool_choice::{Choice, Combine, Criterion};
pub use tool_search::{ToolSearchMode, ToolSupport};

use std::collections::BTreeSet;

use contexture_ir::ToolDefinition;
use contexture_text::case_folded;
use serde::{Deserialize, Serialize};

use crate::names::{LOADER, Name, ToolId};
use crate::policy::PolicyVerdict;
use crate::registry::{
    GroupKind, IndexedUnit, LoadedToolkits, Registry, RegistryEntry, Tool, namespace_tool,
};

/// What an offer depends on besides the registry.
#[derive(Clone, Copy, Debug)]
pub struct OfferRequest<'a> {
    /// Which tools are wanted.
    pub choice: &'a Choice,
    /// Which toolkits were loaded.
    pub loaded: &'a LoadedToolkits,
    /// The selection of the offer before, if there was one.
    pub latched: Option<&'a Selection>,
    /// What the target can do.
    pub support: ToolSupport,
    /// The most tools that the target takes; `None` if no limit is known. A choice by task then keeps fewer; without
    /// one nothing says which tools to leave out, and all that the choice keeps are offered.
    pub limit: Option<usize>,
}

/// Tools for one call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// What to pass as `latched` to the next request.
    pub selection: Selection,
    /// Registered tools that are not offered, and why: first those in no group, then those of namespaces, then those of
    /// toolkits.
    pub excluded: Vec<ExcludedTool>,
}

/// What was offered, to be stored with the conversation's other decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The choice that the offer was made for.
    pub choice: Choice,
    /// The entries of the offer, in order.
    #[serde(rename = "places")]
    pub slots: Vec<OfferSlot>,
}

/// One entry of an offer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferSlot {
    /// A tool in no group, or one of a loaded toolkit.
    Tool(ToolId),
    /// All tools of a namespace.
    Namespace(Name),
    /// The tool that loads toolkits.
    Loader,
    /// A toolkit whose tools are found by the provider's own tool search.
    Toolkit(Name),
    /// The provider's search tool.
    Search,
}

impl Registry {
    /// Offers every tool, in canonical order.
    #[must_use]
    pub fn offer_all(&self) -> Offer {
        self.offer(OfferRequest {
            choice: &Choice::all_tools(),
            loaded: &LoadedToolkits::default(),
            latched: None,
            support: ToolSupport::default(),
            limit: None,
        })
    }

    /// Selects the tools for a request.
    ///
    /// ```
    /// use contexture_ir::Raw;
    /// use contexture_tools::{Choice, LoadedToolkits, ToolSupport, Registry, Tool, OfferRequest};
    ///
    /// let mut registry = Registry::new();
    /// for (name, text) in [
    ///     ("get_weather", "Weather forecast for a city"),
    ///     ("send_mail", "Sends an e-mail"),
    /// ] {
    ///     registry.register(Tool::function(name, text, Raw::parse("{\"type\":\"object\"}")?))?;
    /// }
    /// let choice = Choice::by_task("Will it rain in Oslo? I need a forecast", 1);
    /// let request = OfferRequest { choice: &choice, loaded: &LoadedToolkits::default(), latched: None, support:
    /// ToolSupport::default(), limit: None };
    /// let offer = registry.offer(request);
    /// assert_eq!(offer.tools[0].name(), "get_weather");
    /// assert_eq!(offer.excluded[0].tool.to_string(), "send_mail");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn offer(&self, request: OfferRequest<'_>) -> Offer {
        let same = request
            .latched
            // Slots are held only for the same choice: another choice asked for other tools, so its slots say
            // nothing about this one.
            .filter(|latched| latched.choice == *request.choice);
        let held = same.map_or(&[][..], |latched| &latched.slots);
        let criteria = &request.choice.criteria;
        let has_task = criteria
            .iter()
            .any(|criterion| matches!(criterion, Criterion::Task { .. }));
        let mut most = match has_task {
            true => self.index().len(),
            false => 0,
        };
        loop {
            let offer = self.offer_by_rank(request, held, most);
            let surplus = offer
                .tools
                .len()
                .saturating_sub(request.limit.unwrap_or(usize::MAX));
            if surplus == 0 || most == 0 {
                return offer;
            }
            // Each unit that a task no longer keeps is one tool or more, so this ends.
            most = most.saturating_sub(surplus);
        }
    }

    /// Selects the tools for a request of which a task keeps at most so many.
    fn offer_by_rank(&self, request: OfferRequest<'_>, held: &[OfferSlot], most: usize) -> Offer {
        let mut builder = OfferBuilder::new(self, request, held, most);
        let chosen = builder.select_slots();
        let slots = keep_latched_order(request.latched, chosen);
        let removed = builder.removed.iter().map(|removed| &removed.tool);
        // A namespace or toolkit has one slot for all its members, which must not describe members that the
        // choice excludes. Tools in no group have slots of their own.
        let gone: BTreeSet<&ToolId> = removed.filter(|tool| tool.group.is_some()).collect();
        let offered = slots
            .iter()
            .flat_map(|slot| builder.slot_definitions(slot, &gone));
        let tools = offered.collect();
        Offer {
            tools,
            excluded: builder.removed,
            selection: Selection {
                choice: request.choice.clone(),
                slots,
            },
        }
    }
}

/// Orders the chosen slots: first those that were offered before, in their old order, then the new ones.
fn keep_latched_order(latched: Option<&Selection>, chosen: Vec<OfferSlot>) -> Vec<OfferSlot> {
    let Some(latched) = latched else {
        return chosen;
    };
    // Sets, because an offer may hold a thousand tools and this runs before every call.
    let now: BTreeSet<&OfferSlot> = chosen.iter().collect();
    let before: BTreeSet<&OfferSlot> = latched.slots.iter().collect();
    let kept = latched.slots.iter().filter(|slot| now.contains(slot));
    let new = chosen.iter().filter(|slot| !before.contains(slot));
    // With new slots at the end, the bytes of the earlier definitions stay a prefix of the new ones, which is
    // what caches match.
    kept.chain(new).cloned().collect()
}

/// Decides for each tool, once, whether it is offered.
struct OfferBuilder<'a> {
    registry: &'a Registry,
    request: OfferRequest<'a>,
    /// For each task criterion: whether it keeps each unit, by the unit's number in the index. What the same choice
    /// kept before is kept again, whatever its rank now.
    tasks: Vec<Vec<bool>>,
    removed: Vec<ExcludedTool>,
}

/// Which criteria apply to a tool.
#[derive(Clone, Copy)]
enum FilterScope {
    /// All criteria. The number is that of the tool's unit in the index.
    Ranked(usize),
    /// All but tasks and tags: for the provider's own tools, which have no words to rank, and for tools of toolkits,
    /// which the model loads or searches for itself.
    Exempt,
}

impl<'a> OfferBuilder<'a> {
    fn new(
        registry: &'a Registry,
        request: OfferRequest<'a>,
        held: &[OfferSlot],
        most: usize,
    ) -> Self {
        let tasks = request.choice.criteria.iter().filter_map(|criterion| {
            let Criterion::Task { text, limit } = criterion else {
                return None;
            };
            let index = registry.index();
            let units = task_units(registry, text, *limit).into_iter().take(most);
            // What was kept before stays, even if tools registered since would rank above it: dropping a tool
            // that the model has used breaks its plan.
            let held = held.iter().filter_map(|slot| match slot {
                OfferSlot::Tool(id) => index.unit_number(&IndexedUnit::Tool(id.clone())),
                OfferSlot::Namespace(name) => {
                    index.unit_number(&IndexedUnit::Namespace(name.clone()))
                }
                OfferSlot::Loader | OfferSlot::Toolkit(_) | OfferSlot::Search => None,
            });
            Some(mark_units(index.len(), units.chain(held)))
        });
        Self {
            tasks: tasks.collect(),
            registry,
            request,
            removed: Vec::new(),
        }
    }

    /// Returns the slots that the choice keeps, in canonical order, and records the tools that it excludes.
    fn select_slots(&mut self) -> Vec<OfferSlot> {
        let registry = self.registry;
        let mut slots: Vec<(String, OfferSlot)> = Vec::new();
        // Units are numbered as the index numbers them: flat functions, then namespaces.
        let mut unit = 0;
        for entry in registry
            .tool_entries()
            .filter(|entry| entry.id.group.is_none())
        {
            let scope = if entry.tool.as_function().is_none() {
                // The provider's own tools are not in the index and take no number.
                FilterScope::Exempt
            } else {
                unit += 1;
                FilterScope::Ranked(unit - 1)
            };
            if self.admit_tool(entry, scope) {
                slots.push((
                    entry.id.name.case_folded(),
                    OfferSlot::Tool(entry.id.clone()),
                ));
            }
        }
        for group in registry.groups_of(GroupKind::Namespace) {
            let slot = OfferSlot::Namespace(group.name.clone());
            let scope = FilterScope::Ranked(unit);
            unit += 1;
            let mut kept = false;
            for entry in registry.group_members(group) {
                // `|=` and not `||`: every member must be checked, so that each excluded one gets its reasons.
                kept |= self.admit_tool(entry, scope);
            }
            if kept {
                slots.push((group.name.case_folded(), slot));
            }
        }
        // Loaded tools come last, in the order of loading, so that loading a toolkit in mid-conversation only
        // appends.
        let loaded = self.select_toolkits(&mut slots);
        // By folded name, so that case does not move a tool, then by slot for names equal but for case.
        slots.sort();
        let slots = slots.into_iter().map(|(_, slot)| slot);
        slots.chain(loaded).collect()
    }

    /// Adds the slots that stand for toolkits, and for loading or searching them, to `slots`. Returns the slots of the
    /// tools of loaded toolkits.
    fn select_toolkits(&mut self, slots: &mut Vec<(String, OfferSlot)>) -> Vec<OfferSlot> {
        let registry = self.registry;
        let native = self.request.support.search != ToolSearchMode::Loader;
        let mut any = false;
        for kit in registry.groups_of(GroupKind::Toolkit) {
            any = true;
            let loaded = self.request.loaded.contains(kit.name.as_str());
            let mut kept = false;
            for entry in registry.group_members(kit) {
                // The provider searches deferred tools itself and must be sent all of them, loaded or not.
                if native {
                    kept |= self.admit_tool(entry, FilterScope::Exempt);
                // Tools of loaded toolkits are checked below, where they get slots of their own.
                } else if !loaded {
                    self.removed.push(ExcludedTool {
                        tool: entry.id.clone(),
                        reasons: ExclusionReason::NotLoaded.into(),
                    });
                }
            }
            if kept {
                slots.push((kit.name.case_folded(), OfferSlot::Toolkit(kit.name.clone())));
            }
        }
        if any {
            let slot = if native {
                OfferSlot::Search
            } else {
                OfferSlot::Loader
            };
            // Sorted like a tool named `load_toolkit` in both cases, so that loader and search take the same place.
            slots.push((LOADER.to_owned(), slot));
        }
        let mut tools = Vec::new();
        // With the provider's own search, toolkits are not loaded by us.
        for name in self.request.loaded.iter().filter(|_| !native) {
            let kit = registry.group(name.as_str());
            // A toolkit that has since been unregistered, or become a namespace, is skipped.
            let kit = kit.filter(|kit| kit.kind == GroupKind::Toolkit);
            for entry in kit.into_iter().flat_map(|kit| registry.group_members(kit)) {
                if self.admit_tool(entry, FilterScope::Exempt) {
                    tools.push(OfferSlot::Tool(entry.id.clone()));
                }
            }
        }
        tools
    }

    /// Returns whether the choice keeps a tool; if not, records the tool with the reasons.
    fn admit_tool(&mut self, entry: &RegistryEntry, scope: FilterScope) -> bool {
        let reasons = self.exclusion_reasons(&entry.tool, &entry.id, scope);
        if !reasons.is_empty() {
            let tool = entry.id.clone();
            self.removed.push(ExcludedTool { tool, reasons });
            return false;
        }
        true
    }

    fn exclusion_reasons(&self, tool: &Tool, id: &ToolId, scope: FilterScope) -> ExclusionReasons {
        let criteria = &self.request.choice.criteria;
        let (mut reasons, mut against) = (ExclusionReasons::default(), 0);
        let mut tasks = self.tasks.iter();
        // Every criterion is tried even after one failed: the report lists all reasons.
        for criterion in criteria {
            let reason = match criterion {
                Criterion::Names(patterns) => {
                    let named = patterns.iter().any(|pattern| pattern.matches(id));
                    (!named).then_some(ExclusionReason::Names)
                }
                Criterion::Tags(wanted) => {
                    // A tool without tags is for no purpose in particular, so every choice by tags keeps it.
                    let exempt = matches!(scope, FilterScope::Exempt) || tool.tags.is_empty();
                    (!exempt && !has_common_tag(&tool.tags, wanted))
                        .then_some(ExclusionReason::Tags)
                }
                Criterion::Task { .. } => {
                    let kept = tasks.next();
                    let keeps = |unit| kept.and_then(|kept| kept.get(unit)).copied();
                    match scope {
                        FilterScope::Ranked(unit) if keeps(unit) != Some(true) => {
                            Some(ExclusionReason::Task)
                        }
                        _ => None,
                    }
                }
            };
            if let Some(reason) = reason {
                reasons.add(reason);
                against += 1;
            }
        }
        // Under a union one criterion that keeps the tool outweighs the others, so their reasons are dropped.
        if self.request.choice.combine == Combine::Union && against < criteria.len() {
            reasons = ExclusionReasons::default();
        }
        // After the union: a denied tool stays hidden whatever criterion keeps it.
        let hide = self.request.choice.excluded_by.as_ref();
        if hide.is_some_and(|policy| policy.decide_tool(tool).verdict == PolicyVerdict::Deny) {
            reasons.add(ExclusionReason::Denied);
        }
        reasons
    }

    /// Returns the definitions of a slot, without the members of groups that are in `gone`.
    fn slot_definitions(&self, slot: &OfferSlot, gone: &BTreeSet<&ToolId>) -> Vec<ToolDefinition> {
        let registry = self.registry;
        let kept = |name: &Name| {
            let group = registry.group(name.as_str())?;
            let members = registry.group_members(group).map(AsRef::as_ref);
            let kept = members.filter(|entry: &&RegistryEntry| !gone.contains(&entry.id));
            Some((group, kept.collect::<Vec<_>>()))
        };
        let support = self.request.support;
        match slot {
            OfferSlot::Tool(id) => registry
                .tool_entry(id)
                .map(|entry| entry.tool.definition.clone())
                .into_iter()
                .collect(),
            OfferSlot::Namespace(name) => kept(name)
                .map(|(group, tools)| {
                    let tool = namespace_tool(group, tools.into_iter(), support.args);
                    ToolDefinition::Function(tool)
                })
                .into_iter()
                .collect(),
            OfferSlot::Toolkit(name) => kept(name)
                .map(|(kit, tools)| support.search.deferred_definitions(kit, tools.into_iter()))
                .unwrap_or_default(),
            OfferSlot::Loader => registry
                .loader_tool()
                .map(ToolDefinition::Function)
                .into_iter()
                .collect(),
            OfferSlot::Search => support.search.search_tool().into_iter().collect(),
        }
    }
}

/// The numbers of the units that a task keeps, the best first: so many by their words and the untagged ones, or all if it
/// shares no word with any. Guessing by name would take away the one that it needs.
fn task_units(registry: &Registry, text: &str, limit: usize) -> Vec<usize> {
    if limit == 0 {
        return Vec::new();
    }
    let index = registry.index();
    let ranked = index.best_units(text, usize::MAX);
    let is_matched = ranked.first().is_some_and(|(score, _)| *score > 0.0);
    let ranked = ranked.into_iter().map(|(_, unit)| unit);
    if !is_matched {
        return ranked.collect();
    }
    let mut units: Vec<usize> = ranked.take(limit).collect();
    let chosen = mark_units(index.len(), units.iter().copied());
    let untagged = untagged_units(registry).into_iter();
    units.extend(untagged.filter(|unit| chosen.get(*unit) == Some(&false)));
    units
}

/// The numbers of the flat functions without tags, where others have some: such a tool is for no purpose in particular, so it is
/// kept whatever the task. Where nobody uses tags, a tool without any says nothing.
fn untagged_units(registry: &Registry) -> Vec<usize> {
    if registry.tools().all(|tool| tool.tags.is_empty()) {
        return Vec::new();
    }
    let flat = registry
        .tool_entries()
        .filter(|entry| entry.id.group.is_none() && entry.tool.as_function().is_some());
    let untagged = flat
        .enumerate()
        .filter(|(_, entry)| entry.tool.tags.is_empty());
    untagged.map(|(unit, _)| unit).collect()
}

/// Returns one flag for each of `count` units: whether it is among `units`.
fn mark_units(count: usize, units: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut marked = vec![false; count];
    for unit in units {
        if let Some(slot) = marked.get_mut(unit) {
            *slot = true;
        }
    }
    marked
}

/// Whether two sets of tags have a tag in common; case does not matter.
fn has_common_tag(tags: &BTreeSet<String>, wanted: &BTreeSet<String>) -> bool {
    tags.iter().any(|tag| {
        // The exact tag is tried first; hosts mostly use one spelling, and folding allocates.
        wanted.contains(tag) || {
            let tag = case_folded(tag);
            wanted.iter().any(|wanted| case_folded(wanted) == tag)
        }
    })
}
