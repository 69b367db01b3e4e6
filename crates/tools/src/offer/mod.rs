//! The offer of one call: the tools that a choice keeps, in an order that holds.
//!
//! The first offer stands in order of lower-cased names. It is remembered as a [`Selection`], and later offers for the
//! same choice keep its tools where they are: a task that is ranked otherwise since, because tools were added, removes
//! nothing, and what is new comes last. Only another choice decides anew, and even then what stays keeps its order. So the
//! bytes of earlier offers begin the later ones for as long as nothing is unregistered, replaced or put into a
//! namespace.
//!
//! Not here: writing tools for a provider; that is wire's.

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

/// What an offer depends on beside the registry.
#[derive(Clone, Copy, Debug)]
pub struct OfferRequest<'a> {
    /// Which tools are wanted.
    pub choice: &'a Choice,
    /// Which toolkits were loaded.
    pub loaded: &'a LoadedToolkits,
    /// What was offered before, if anything was.
    pub latched: Option<&'a Selection>,
    /// What the target can do.
    pub support: ToolSupport,
}

/// Tools for one call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The tools, in order.
    pub tools: Vec<ToolDefinition>,
    /// What is to be remembered for the next offer.
    pub selection: Selection,
    /// Registered tools that are not offered, and why: flat ones, then those of namespaces, then those of toolkits.
    pub excluded: Vec<ExcludedTool>,
}

/// What was offered, to be stored with the conversation's other decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The choice by which it was made.
    pub choice: Choice,
    /// What stands in the offer, in order.
    #[serde(rename = "places")]
    pub slots: Vec<OfferSlot>,
}

/// One place of an offer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferSlot {
    /// A flat tool, or one of a loaded toolkit.
    Tool(ToolId),
    /// All tools of a namespace.
    Namespace(Name),
    /// The tool that loads toolkits.
    Loader,
    /// A toolkit whose tools the provider searches.
    Toolkit(Name),
    /// The provider's tool that searches.
    Search,
}

impl Registry {
    /// Every tool, in canonical order.
    #[must_use]
    pub fn offer_all(&self) -> Offer {
        self.offer(OfferRequest {
            choice: &Choice::all_tools(),
            loaded: &LoadedToolkits::default(),
            latched: None,
            support: ToolSupport::default(),
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
    /// let wish = OfferRequest { choice: &choice, loaded: &LoadedToolkits::default(), latched: None, support:
    /// ToolSupport::default() };
    /// let offer = registry.offer(wish);
    /// assert_eq!(offer.tools[0].name(), "get_weather");
    /// assert_eq!(offer.removed[0].tool.to_string(), "send_mail");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn offer(&self, wish: OfferRequest<'_>) -> Offer {
        let same = wish
            .latched
            // Only the same choice holds its slots: another one asked for other tools, so its places mean
            // nothing here.
            .filter(|latched| latched.choice == *wish.choice);
        let held = same.map_or(&[][..], |latched| &latched.slots);
        let mut judge = OfferBuilder::new(self, wish, held);
        let chosen = judge.select_slots();
        let places = keep_latched_order(wish.latched, chosen);
        let removed = judge.removed.iter().map(|removed| &removed.tool);
        // A namespace or toolkit is offered as one entry that must not describe members the choice removed.
        // Flat tools have a slot of their own.
        let gone: BTreeSet<&ToolId> = removed.filter(|tool| tool.group.is_some()).collect();
        let offered = places
            .iter()
            .flat_map(|place| judge.slot_definitions(place, &gone));
        let tools = offered.collect();
        Offer {
            tools,
            excluded: judge.removed,
            selection: Selection {
                choice: wish.choice.clone(),
                slots: places,
            },
        }
    }
}

/// Orders slots: what was offered before and still is, then what is new.
fn keep_latched_order(latched: Option<&Selection>, chosen: Vec<OfferSlot>) -> Vec<OfferSlot> {
    let Some(latched) = latched else {
        return chosen;
    };
    // Sets, because an offer may hold a thousand tools and this runs before every call.
    let now: BTreeSet<&OfferSlot> = chosen.iter().collect();
    let before: BTreeSet<&OfferSlot> = latched.slots.iter().collect();
    let kept = latched.slots.iter().filter(|place| now.contains(place));
    let new = chosen.iter().filter(|place| !before.contains(place));
    // New slots at the end keep the bytes of the earlier definitions a prefix of the new ones, which is what
    // caches go by.
    kept.chain(new).cloned().collect()
}

/// Decides about each tool, once.
struct OfferBuilder<'a> {
    registry: &'a Registry,
    wish: OfferRequest<'a>,
    /// For each criterion by task: whether it keeps a unit, by the index's numbers. What the same choice kept before is
    /// not measured against the task again.
    tasks: Vec<Vec<bool>>,
    removed: Vec<ExcludedTool>,
}

/// What may be held against a tool.
#[derive(Clone, Copy)]
enum FilterScope {
    /// A unit of the index, by its number.
    Ranked(usize),
    /// Kept by every task and tag: the provider's own tools, which have no words, and tools of loaded toolkits, which
    /// the model asked for itself.
    Exempt,
}

impl<'a> OfferBuilder<'a> {
    fn new(registry: &'a Registry, wish: OfferRequest<'a>, held: &[OfferSlot]) -> Self {
        let tasks = wish.choice.criteria.iter().filter_map(|criterion| {
            let Criterion::Task { text, limit } = criterion else {
                return None;
            };
            let index = registry.index();
            let best = index
                .best_units(text, *limit)
                .into_iter()
                .map(|(_, unit)| unit);
            // What was kept before stays, even if tools registered since would rank above it: dropping a tool
            // that the model has used breaks its plan.
            let held = held.iter().filter_map(|place| match place {
                OfferSlot::Tool(id) => index.unit_number(&IndexedUnit::Tool(id.clone())),
                OfferSlot::Namespace(name) => {
                    index.unit_number(&IndexedUnit::Namespace(name.clone()))
                }
                OfferSlot::Loader | OfferSlot::Toolkit(_) | OfferSlot::Search => None,
            });
            Some(mark_units(index.len(), best.chain(held)))
        });
        Self {
            tasks: tasks.collect(),
            registry,
            wish,
            removed: Vec::new(),
        }
    }

    /// The places that the choice keeps, in canonical order; notes what it does not.
    fn select_slots(&mut self) -> Vec<OfferSlot> {
        let registry = self.registry;
        let mut places: Vec<(String, OfferSlot)> = Vec::new();
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
                places.push((
                    entry.id.name.case_folded(),
                    OfferSlot::Tool(entry.id.clone()),
                ));
            }
        }
        for group in registry.groups_of(GroupKind::Namespace) {
            let place = OfferSlot::Namespace(group.name.clone());
            let scope = FilterScope::Ranked(unit);
            unit += 1;
            let mut kept = false;
            for entry in registry.group_members(group) {
                // `|=` and not `||`: every member must be judged, so that each removal gets its reason.
                kept |= self.admit_tool(entry, scope);
            }
            if kept {
                places.push((group.name.case_folded(), place));
            }
        }
        // Loaded tools come after everything, in the order of loading: a load in mid-conversation then only
        // appends.
        let loaded = self.select_toolkits(&mut places);
        // By folded name, so that case does not move a tool, then by slot for names equal but for case.
        places.sort();
        let places = places.into_iter().map(|(_, place)| place);
        places.chain(loaded).collect()
    }

    /// Adds what stands for the toolkits to `places`, and returns the tools of those that are loaded.
    fn select_toolkits(&mut self, places: &mut Vec<(String, OfferSlot)>) -> Vec<OfferSlot> {
        let registry = self.registry;
        let native = self.wish.support.search != ToolSearchMode::Loader;
        let mut any = false;
        for kit in registry.groups_of(GroupKind::Toolkit) {
            any = true;
            let loaded = self.wish.loaded.contains(kit.name.as_str());
            let mut kept = false;
            for entry in registry.group_members(kit) {
                // The provider searches deferred tools itself and must be sent all of them, loaded or not.
                if native {
                    kept |= self.admit_tool(entry, FilterScope::Exempt);
                // What is loaded is judged below, with the tools that get slots of their own.
                } else if !loaded {
                    self.removed.push(ExcludedTool {
                        tool: entry.id.clone(),
                        reasons: ExclusionReason::NotLoaded.into(),
                    });
                }
            }
            if kept {
                places.push((kit.name.case_folded(), OfferSlot::Toolkit(kit.name.clone())));
            }
        }
        if any {
            let place = if native {
                OfferSlot::Search
            } else {
                OfferSlot::Loader
            };
            // Sorted in like a tool of this name, so that loader and search stand where the other would.
            places.push((LOADER.to_owned(), place));
        }
        let mut tools = Vec::new();
        // With a native search nothing is loaded by us.
        for name in self.wish.loaded.iter().filter(|_| !native) {
            let kit = registry.group(name.as_str());
            // A toolkit that was unregistered since, or became a namespace, is passed over.
            let kit = kit.filter(|kit| kit.kind == GroupKind::Toolkit);
            for entry in kit.into_iter().flat_map(|kit| registry.group_members(kit)) {
                if self.admit_tool(entry, FilterScope::Exempt) {
                    tools.push(OfferSlot::Tool(entry.id.clone()));
                }
            }
        }
        tools
    }

    /// Whether the choice keeps a tool; if not, it is noted.
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
        let criteria = &self.wish.choice.criteria;
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
                    // A tool without tags is nobody's in particular and fits every selection by tags.
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
        if self.wish.choice.combine == Combine::Union && against < criteria.len() {
            reasons = ExclusionReasons::default();
        }
        // After the union: a denied tool stays hidden whatever criterion keeps it.
        let hide = self.wish.choice.excluded_by.as_ref();
        if hide.is_some_and(|policy| policy.decide_tool(tool).verdict == PolicyVerdict::Deny) {
            reasons.add(ExclusionReason::Denied);
        }
        reasons
    }

    /// What stands at a place, without the tools of groups that are `gone`.
    fn slot_definitions(&self, place: &OfferSlot, gone: &BTreeSet<&ToolId>) -> Vec<ToolDefinition> {
        let registry = self.registry;
        let kept = |name: &Name| {
            let group = registry.group(name.as_str())?;
            let members = registry.group_members(group).map(AsRef::as_ref);
            let kept = members.filter(|entry: &&RegistryEntry| !gone.contains(&entry.id));
            Some((group, kept.collect::<Vec<_>>()))
        };
        let support = self.wish.support;
        match place {
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

/// A flag for each of so many units: whether it is among these.
fn mark_units(count: usize, units: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut marked = vec![false; count];
    for unit in units {
        if let Some(slot) = marked.get_mut(unit) {
            *slot = true;
        }
    }
    marked
}

/// Whether two sets of tags meet; case does not matter.
fn has_common_tag(tags: &BTreeSet<String>, wanted: &BTreeSet<String>) -> bool {
    tags.iter().any(|tag| {
        // The exact tag is tried first; hosts mostly use one spelling, and folding allocates.
        wanted.contains(tag) || {
            let tag = case_folded(tag);
            wanted.iter().any(|wanted| case_folded(wanted) == tag)
        }
    })
}
