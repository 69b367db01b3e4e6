//! Targets by name, so that a program names `fast` in its calls and defines it in one place.
//!
//! A call's own target comes first, then the engine's default; there is no default that nobody set.
//!
//! Not here: models, which are the catalogue's.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_compile::{SharedAdapter, Target};

use super::engine::Engine;
use crate::error::EngineError;

/// Registers targets that come and go together, a plug-in's say, for this engine and its clones; they
/// take the place of others of their names.
pub(crate) fn register_targets(
    engine: &Engine,
    source: &str,
    targets: impl IntoIterator<Item = (String, Target)>,
) {
    let targets: Vec<(String, Target)> = targets.into_iter().collect();
    let mut registry = engine.targets().lock();
    for (name, target) in targets {
        let source = Some(source.to_owned());
        registry
            .named
            .insert(name, RegisteredTarget { target, source });
    }
}

/// Takes back what came from a source, and gives the names. Those that were there before do not come
/// back.
pub(crate) fn unregister_targets(engine: &Engine, source: &str) -> Vec<String> {
    let mut registry = engine.targets().lock();
    let gone = |registered: &RegisteredTarget| registered.source.as_deref() == Some(source);
    let names = registry.named.iter();
    let names = names.filter(|(_, registered)| gone(registered));
    let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
    registry.named.retain(|_, registered| !gone(registered));
    names
}

/// The target of a call: its own, or that of a name, or the default.
pub(crate) fn resolve_target<'a>(
    engine: &Engine,
    choice: TargetChoice<'a>,
) -> Result<Cow<'a, Target>, EngineError> {
    let registry = engine.targets().lock();
    let name = match choice {
        // Without the registry: a call with its own target works on an engine that has none.
        TargetChoice::Given(target) => return Ok(Cow::Borrowed(target)),
        TargetChoice::Named(name) => Some(name),
        TargetChoice::Default => registry.default.as_deref(),
    };
    match name.and_then(|name| registry.named.get(name)) {
        Some(registered) => Ok(Cow::Owned(registered.target.clone())),
        None => Err(EngineError::NoTarget {
            name: name.map(str::to_owned),
            available: registry.named.keys().cloned().collect(),
        }),
    }
}

/// Finds the adapter of this name among the registered targets.
pub(crate) fn find_adapter(engine: &Engine, name: &str) -> Option<SharedAdapter> {
    let registry = engine.targets().lock();
    let adapters = registry
        .named
        .values()
        .filter_map(|one| one.target.adapter());
    let mut named = adapters.filter(|adapter| adapter.name() == name);
    named.next().cloned()
}

/// Which target a call is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TargetChoice<'a> {
    /// The engine's default.
    #[default]
    Default,
    /// The one that was registered under this name.
    Named(&'a str),
    /// The target in the argument.
    Given(&'a Target),
}

impl<'a> From<&'a Target> for TargetChoice<'a> {
    fn from(target: &'a Target) -> Self {
        Self::Given(target)
    }
}

impl<'a> From<&'a str> for TargetChoice<'a> {
    fn from(name: &'a str) -> Self {
        Self::Named(name)
    }
}

/// The targets of an engine, shared by its clones.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<TargetRegistry>);

#[derive(Debug, Default)]
pub(crate) struct TargetRegistry {
    pub(crate) named: BTreeMap<String, RegisteredTarget>,
    pub(crate) default: Option<String>,
}

#[derive(Debug)]
pub(crate) struct RegisteredTarget {
    pub(crate) target: Target,
    pub(crate) source: Option<String>,
}

impl Targets {
    /// Registers a target under a name; the first one becomes the default.
    pub(crate) fn set_target(&self, name: String, target: Target) {
        let mut registry = self.lock();
        registry.default.get_or_insert_with(|| name.clone());
        let source = None;
        registry
            .named
            .insert(name, RegisteredTarget { target, source });
    }

    /// Makes the target of this name the default.
    pub(crate) fn set_default(&self, name: String) {
        self.lock().default = Some(name);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TargetRegistry> {
        // Each change is one insertion or removal, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(engine: &Engine, choice: TargetChoice<'_>) -> String {
        engine.resolve_target(choice).unwrap().model().to_owned()
    }

    #[test]
    fn a_calls_own_target_comes_first_and_then_the_default() {
        let engine = Engine::in_memory();
        let none = engine.resolve_target(TargetChoice::Default).unwrap_err();
        assert_eq!(none.to_string(), "no target: none is registered");
        let engine = engine
            .with_target("a", Target::openai_chat("gpt-4o"))
            .with_target("b", Target::gemini("gemini-2.5-pro"));
        let own = Target::anthropic("claude-sonnet-4-5");
        assert_eq!(model(&engine, (&own).into()), "claude-sonnet-4-5");
        assert_eq!(model(&engine, "b".into()), "gemini-2.5-pro");
        assert_eq!(model(&engine, TargetChoice::Default), "gpt-4o");
        let engine = engine.with_default_target("b");
        assert_eq!(model(&engine, TargetChoice::Default), "gemini-2.5-pro");
        let unknown = engine.resolve_target("c").unwrap_err();
        assert_eq!(unknown.to_string(), "no target \"c\": registered are a, b");
        // Replaced.
        let engine = engine.with_target("b", own);
        assert_eq!(model(&engine, "b".into()), "claude-sonnet-4-5");
    }

    #[test]
    fn what_came_together_goes_together() {
        let engine = Engine::in_memory().with_target("a", Target::openai_chat("gpt-4o"));
        let plugin = ["b", "c"].map(|name| (name.to_owned(), Target::openai_chat("gpt-4.1")));
        engine.clone().register_targets("plug-in", plugin);
        assert_eq!(model(&engine, "c".into()), "gpt-4.1");
        assert_eq!(engine.unregister_targets("plug-in"), ["b", "c"]);
        assert!(engine.resolve_target("c").is_err());
        assert_eq!(model(&engine, "a".into()), "gpt-4o");
        assert!(engine.unregister_targets("plug-in").is_empty());
    }
}
