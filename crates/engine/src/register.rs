//! Naming targets, and finding the one of a call.

use std::borrow::Cow;

use contexture_compile::Target;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::targets::{RegisteredTarget, TargetChoice};

impl Engine {
    /// The same engine with a target by this name, in the place of an earlier one. The first is the
    /// default until [`Self::with_default_target`] names another.
    ///
    /// ```
    /// use contexture_compile::Target;
    /// use contexture_engine::{Engine, TargetChoice};
    ///
    /// let engine = Engine::in_memory()
    ///     .with_target("careful", Target::anthropic("claude-sonnet-4-5"))
    ///     .with_target("fast", Target::openai_chat("gpt-4o-mini"));
    /// assert_eq!(engine.resolve_target("fast")?.model(), "gpt-4o-mini");
    /// assert_eq!(engine.resolve_target(TargetChoice::Default)?.model(), "claude-sonnet-4-5");
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// ```
    #[must_use]
    pub fn with_target(self, name: impl Into<String>, target: Target) -> Self {
        let (name, source) = (name.into(), None);
        let mut registry = self.targets().lock();
        registry.default.get_or_insert_with(|| name.clone());
        registry
            .named
            .insert(name, RegisteredTarget { target, source });
        drop(registry);
        self
    }

    /// The same engine with the target of this name as the default.
    #[must_use]
    pub fn with_default_target(self, name: impl Into<String>) -> Self {
        self.targets().lock().default = Some(name.into());
        self
    }

    /// Registers targets that come and go together, a plug-in's say, for this engine and its clones; they
    /// take the place of others of their names.
    pub fn register_targets(
        &self,
        source: &str,
        targets: impl IntoIterator<Item = (String, Target)>,
    ) {
        let targets: Vec<(String, Target)> = targets.into_iter().collect();
        let mut registry = self.targets().lock();
        for (name, target) in targets {
            let source = Some(source.to_owned());
            registry
                .named
                .insert(name, RegisteredTarget { target, source });
        }
    }

    /// Takes back what came from a source, and gives the names. Those that were there before do not come
    /// back.
    pub fn unregister_targets(&self, source: &str) -> Vec<String> {
        let mut registry = self.targets().lock();
        let gone = |registered: &RegisteredTarget| registered.source.as_deref() == Some(source);
        let names = registry.named.iter();
        let names = names.filter(|(_, registered)| gone(registered));
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        registry.named.retain(|_, registered| !gone(registered));
        names
    }

    /// The target of a call: its own, or that of a name, or the default.
    ///
    /// # Errors
    /// [`EngineError::NoTarget`], with the names there are.
    pub fn resolve_target<'a>(
        &self,
        choice: impl Into<TargetChoice<'a>>,
    ) -> Result<Cow<'a, Target>, EngineError> {
        let choice = choice.into();
        let registry = self.targets().lock();
        let name = match choice {
            TargetChoice::Given(target) => return Ok(Cow::Borrowed(target)),
            TargetChoice::Named(name) => Some(name),
            TargetChoice::Default => registry.default.as_deref(),
        };
        match name.and_then(|name| registry.named.get(name)) {
            Some(registered) => Ok(Cow::Owned(registered.target.clone())),
            None => Err(EngineError::NoTarget {
                name: name.map(str::to_owned),
                known: registry.named.keys().cloned().collect(),
            }),
        }
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
