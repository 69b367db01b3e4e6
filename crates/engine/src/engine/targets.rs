//! The methods of [`Engine`] about targets: the models, formats and windows that calls name.

use std::borrow::Cow;

use contexture_compile::Target;

use crate::error::EngineError;
use crate::handle::{Engine, TargetChoice, register_targets, resolve_target, unregister_targets};

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
        self.targets().set_target(name.into(), target);
        self
    }

    /// The same engine with the target of this name as the default.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{Engine, TargetChoice};
    /// let engine = Engine::in_memory()
    ///     .with_target("careful", Target::anthropic("claude-sonnet-4-5"))
    ///     .with_target("fast", Target::openai_chat("gpt-4o-mini"))
    ///     .with_default_target("fast");
    /// assert_eq!(engine.resolve_target(TargetChoice::Default)?.model(), "gpt-4o-mini");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_default_target(self, name: impl Into<String>) -> Self {
        self.targets().set_default(name.into());
        self
    }

    /// Registers targets that come and go together, a plug-in's say, for this engine and its clones; they
    /// take the place of others of their names.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// let engine = Engine::in_memory();
    /// engine.register_targets("plug-in", [("fast".to_owned(), Target::openai_chat("gpt-4o-mini"))]);
    /// assert_eq!(engine.resolve_target("fast")?.model(), "gpt-4o-mini");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_targets(
        &self,
        source: &str,
        targets: impl IntoIterator<Item = (String, Target)>,
    ) {
        register_targets(self, source, targets)
    }

    /// Takes back what came from a source, and gives the names. Those that were there before do not come
    /// back.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// let engine = Engine::in_memory();
    /// engine.register_targets("plug-in", [("fast".to_owned(), Target::openai_chat("gpt-4o-mini"))]);
    /// assert_eq!(engine.unregister_targets("plug-in"), ["fast"]);
    /// assert!(engine.resolve_target("fast").is_err());
    /// ```
    pub fn unregister_targets(&self, source: &str) -> Vec<String> {
        unregister_targets(self, source)
    }

    /// The target of a call: its own, or that of a name, or the default.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// let engine = Engine::in_memory().with_target("fast", Target::openai_chat("gpt-4o-mini"));
    /// assert_eq!(engine.resolve_target("fast")?.model(), "gpt-4o-mini");
    /// let error = engine.resolve_target("slow").unwrap_err();
    /// assert!(error.to_string().contains("fast"), "the error lists the names there are");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NoTarget`], with the names there are.
    pub fn resolve_target<'a>(
        &self,
        choice: impl Into<TargetChoice<'a>>,
    ) -> Result<Cow<'a, Target>, EngineError> {
        resolve_target(self, choice.into())
    }
}
