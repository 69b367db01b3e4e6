//! From a document to what the engine takes: a target, contributions, layers.

use std::sync::Arc;

use contexture::catalogue::{Capabilities, Catalogue};
use contexture::compile::{
    Band, Budget, Content, Contribution, HistoryPolicy, Placement, READ_TOOL, Target, Window,
    read_tool,
};
use contexture::engine::LastTarget;
use contexture::ir::{Item, parse_fragments};
use contexture::layers::builtin::Memory;
use contexture::layers::{Layers, LayersError, OfferedTo, StateScope};
use contexture::render::{self, Grouping, Renderer};
use contexture::{EngineError, Format};

use crate::documents::CompileDocument;
use crate::operations::tools::{read_tool_settings, retain_offered_tools};
use crate::operations::{Host, OperationError};
use crate::policy::{
    MemoryConfig, MemoryPlacement, MemoryScope, PolicyConfig, PreviewConfig, StateConfig,
};

/// A document that was read as far as that needs neither a history nor a store.
#[derive(Clone, Debug)]
pub(crate) struct ReadRequest<'a> {
    pub(crate) asked: &'a CompileDocument,
    /// The policy, with what the document says in its place.
    pub(crate) policy: Option<PolicyConfig>,
    pub(crate) format: Format,
    pub(crate) model: String,
}

impl<'a> ReadRequest<'a> {
    /// Reads a document. `last` is the target of the newest answer.
    ///
    /// # Errors
    /// A member that cannot be followed; no model.
    pub(crate) fn read(
        asked: &'a CompileDocument,
        host: &Host<'_>,
        catalogue: &Catalogue,
        last: Option<LastTarget>,
    ) -> Result<Self, OperationError> {
        let mut policy = host.find_policy(asked.policy.as_ref())?;
        if asked.state.is_some() || asked.guardrails.is_some() {
            // What they leave out is as without a policy: nothing is cut that would fit.
            let own = policy.get_or_insert_with(PolicyConfig::default);
            let state = asked.state.clone().map(StateConfig);
            own.state = state.or(own.state.take());
            if let Some(guardrails) = &asked.guardrails {
                own.guardrails = guardrails.clone();
            }
            if let Some(fault) = own.first_fault() {
                return Err(OperationError::member(&fault.path.join("."), fault.detail));
            }
        }
        let named = asked.model.clone().map(|model| LastTarget {
            model,
            format: None,
        });
        let target = named.or(last).ok_or_else(|| {
            let detail = "is missing, and no answer among the last items of this branch names one";
            OperationError::member("model", detail)
        })?;
        let format = match &asked.to {
            Some(name) => parse_provider_format("to", name)?,
            None => target.request_format(catalogue),
        };
        Ok(Self {
            asked,
            policy,
            format,
            model: target.model,
        })
    }

    /// Returns whether the history decides which of the document's tools are offered.
    pub(crate) fn selects_tools(&self) -> bool {
        let selects = |policy: &PolicyConfig| policy.tools.select.is_some();
        self.asked.tools.is_some() && self.policy.as_ref().is_some_and(selects)
    }

    /// Returns the target of the call for a history, which is looked at where the policy [selects](Self::selects_tools) tools by it.
    ///
    /// # Errors
    /// Tools that cannot be read.
    pub(crate) fn target<'i>(
        &self,
        history: impl Iterator<Item = &'i Item> + Clone,
    ) -> Result<Target, OperationError> {
        let asked = self.asked;
        let limit = self.policy.as_ref().and_then(|policy| policy.limit_tokens);
        let mut target = Target::new(self.format, &self.model).history(self.history_policy());
        if let Some(window) = asked.window.or(limit) {
            target = target.window(window);
        }
        if let Some(reserve) = asked.reserve {
            target = target.reserve(reserve);
        }
        if let Some(count) = asked.count {
            target = target.count(count);
        }
        for (name, value) in asked.params.iter().flatten() {
            target = target.param(name, value.clone());
        }
        let (tools, choice) = (asked.tools.as_deref(), asked.tool_choice.as_ref());
        if let Some(mut settings) = read_tool_settings(self.format, tools, choice)? {
            if let Some(policy) = &self.policy {
                retain_offered_tools(&mut settings, policy, history)?;
            }
            target = target.request_settings(&settings);
        }
        Ok(target)
    }

    /// Returns the target with the tool that reads what is left out, if anything may be.
    pub(crate) fn with_read_tool(&self, target: Target) -> Target {
        let history = self.history_policy();
        let compacts = self
            .policy
            .as_ref()
            .is_some_and(|policy| policy.compact.is_some());
        let allows = self
            .policy
            .as_ref()
            .is_none_or(|policy| policy.tools.allows(READ_TOOL));
        let is_theirs = target
            .tool_definitions()
            .iter()
            .any(|tool| tool.name() == READ_TOOL);
        // From the first call on, as tools stand before everything that a provider caches.
        match (history.preview.is_some() || compacts) && allows && !is_theirs {
            true => target.add_tools([read_tool()]),
            false => target,
        }
    }

    fn history_policy(&self) -> HistoryPolicy {
        let mut history = self
            .policy
            .as_ref()
            .map_or_else(HistoryPolicy::default, |policy| policy.history_policy());
        if let Some(turns) = self.asked.turns {
            history.window = Window::Turns(turns);
        }
        if let Some(characters) = self.asked.preview {
            history.preview = Some(PreviewConfig::above(characters).preview_policy());
        }
        history
    }

    /// Returns what the document says beside the history, to a model with these capabilities.
    ///
    /// # Errors
    /// Fragments that cannot be read, state or guardrails that cannot be said.
    pub(crate) fn contributions(
        &self,
        capabilities: &Capabilities,
        renderer: &Arc<dyn Renderer>,
    ) -> Result<Vec<Contribution>, OperationError> {
        let mut said = Vec::new();
        said.extend(self.system_contribution(renderer)?);
        let context = self.asked.context.iter();
        said.extend(context.map(|(name, text)| Contribution::context(name, text)));
        if let Some(policy) = &self.policy {
            let own = policy.contributions(capabilities);
            said.extend(own.map_err(|error| OperationError::member("policy", error.to_string()))?);
        }
        let reminders = self.asked.reminders.iter();
        said.extend(reminders.map(|text| Contribution::tail("reminder", text).into_pinned()));
        Ok(said)
    }

    /// Returns what is added to the system prompt: a text, or fragments; `None` if that is nothing, which would still appear in
    /// the report.
    fn system_contribution(
        &self,
        renderer: &Arc<dyn Renderer>,
    ) -> Result<Option<Contribution>, OperationError> {
        let Some(system) = &self.asked.system else {
            return Ok(None);
        };
        if let Some(text) = system.as_string() {
            let said = Contribution::system("instructions", text.as_str());
            return Ok((!text.is_empty()).then_some(said));
        }
        let fragments = parse_fragments(system.get()).map_err(EngineError::from)?;
        if fragments.is_empty() {
            return Ok(None);
        }
        let renderer = Arc::clone(renderer);
        let content = Content::Fragments {
            fragments,
            renderer,
        };
        Ok(Some(Contribution::new("fragments", Band::System, content)))
    }

    /// Returns the renderer that the document names.
    ///
    /// # Errors
    /// It names none that there is.
    pub(crate) fn renderer(&self) -> Result<Arc<dyn Renderer>, OperationError> {
        let name = self.asked.renderer.as_deref().unwrap_or("xml");
        let format: render::Format = name.parse().map_err(|_| {
            let known = render::Format::ALL.map(render::Format::as_str).join(", ");
            let detail = format!("unknown format {name:?}; known are {known}");
            OperationError::member("renderer", detail)
        })?;
        Ok(Arc::from(format.renderer(Grouping::Off)))
    }
}

/// Returns the layers that a policy and a list of skills make.
///
/// # Errors
/// There is no skill of a name.
pub(crate) fn build_layers(
    host: &Host<'_>,
    policy: Option<&PolicyConfig>,
    skills: &[String],
) -> Result<Layers, OperationError> {
    let refused = |error: LayersError| OperationError::Engine(error.into());
    let mut layers = Layers::new();
    if let Some(skills) = host.find_skills(skills)? {
        layers = layers.with_layer(skills).map_err(refused)?;
    }
    if let Some(config) = policy.and_then(|policy| policy.memory.as_option()) {
        let scope = match config.of {
            MemoryScope::User => StateScope::Resource,
            MemoryScope::Owner => StateScope::Global,
        };
        let whom = match config.tools {
            true => OfferedTo::Model,
            false => OfferedTo::Host,
        };
        let memory = memory_layer(config, scope).with_tools_for(whom);
        layers = layers.with_layer(memory).map_err(refused)?;
    }
    Ok(layers)
}

/// Returns the layer of notes that a policy describes.
#[must_use]
pub fn memory_layer(config: &MemoryConfig, scope: StateScope) -> Memory {
    let memory = Memory::new().with_scope(scope);
    let memory = memory.with_placement(match config.placement {
        MemoryPlacement::System => Placement::System,
        MemoryPlacement::Tail => Placement::Tail,
    });
    match config.budget_tokens {
        Some(tokens) => memory.with_spec(|spec| spec.budget = Budget::at_most(tokens)),
        None => memory,
    }
}

/// Parses the name of a provider's format.
///
/// # Errors
/// There is none of this name, or it is one of our own documents: no model takes those.
pub(crate) fn parse_provider_format(member: &str, name: &str) -> Result<Format, OperationError> {
    let format: Option<Format> = name.parse().ok();
    format
        .filter(|format| Format::PROVIDERS.contains(format))
        .ok_or_else(|| {
            let known = Format::PROVIDERS.map(Format::as_str).join(", ");
            OperationError::member(member, format!("no model reads {name:?}; expected {known}"))
        })
}
