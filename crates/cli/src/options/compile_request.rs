//! What is to be compiled for whom: the arguments of `compile`, and its lines in a stream.

use std::borrow::Cow;
use std::sync::Arc;

use contexture::catalogue::ModelSpec;
use contexture::compile::{
    Band, BudgetCount, CompileError, Compiled, Compiler, Content, Contribution, MarkerPolicy,
    Target,
};
use contexture::ir::{Fragment, Raw, ToolChoice, Transcript};
use contexture::render::Renderer;
use contexture::{Catalogue, Format};
use contexture_api::policy::PolicyConfig;

use crate::options::default_model;
use crate::output::failure::{Failure, Outcome};

/// To whom, how much, and what else to say.
#[derive(Clone, Debug)]
pub(crate) struct CompileSettings {
    /// The format of the result.
    pub(crate) to: Format,
    /// The model, if one was named.
    pub(crate) model: Option<String>,
    /// Tokens the model can hold, if it was said.
    pub(crate) window: Option<u64>,
    /// Tokens kept free for the answer, if it was said.
    pub(crate) reserve: Option<u64>,
    /// The count that the budget goes by, if it was said.
    pub(crate) count: Option<BudgetCount>,
    /// Top-level fields of the payload, verbatim.
    pub(crate) params: Vec<(String, Raw)>,
    /// Fragments for the system prompt.
    pub(crate) system: Vec<Fragment>,
    /// What renders them.
    pub(crate) renderer: Arc<dyn Renderer>,
    /// How the history is shown, and what is said beside it.
    pub(crate) policy: PolicyConfig,
}

impl CompileSettings {
    /// The same for a document: for the model that a request of the target's own format names, even if nobody here knows it.
    /// The window of such a model is taken to be that of the provider's general one, unless it was said.
    pub(crate) fn for_document(
        &self,
        request: &Transcript,
        written_in: Option<Format>,
    ) -> Cow<'_, Self> {
        let known = Catalogue::builtin();
        let is_unknown = |name: &&String| known.resolve(name).is_err();
        let own = request.model.as_ref().filter(is_unknown);
        let Some(own) = own.filter(|_| self.model.is_none() && written_in == Some(self.to)) else {
            return Cow::Borrowed(self);
        };
        let general = known.resolve(default_model::default_model(self.to));
        Cow::Owned(Self {
            model: Some(own.clone()),
            window: self.window.or(general.ok().map(|spec| spec.context_window)),
            ..self.clone()
        })
    }

    /// The models there are; with the one that is named, if its window is said and nobody knows it.
    pub(crate) fn catalogue(&self) -> Cow<'static, Catalogue> {
        let known = Catalogue::builtin();
        match self.unknown_model() {
            Some((name, window)) => {
                Cow::Owned(known.with_model(ModelSpec::of_unknown(name, window)))
            }
            None => Cow::Borrowed(known),
        }
    }

    /// The model that is named and nobody knows, and the window that is said of it.
    pub(crate) fn unknown_model(&self) -> Option<(&str, u64)> {
        let name = self.model.as_deref()?;
        // Only with a stated window: without one nothing could be fitted, and the name is an error.
        let unknown = Catalogue::builtin().resolve(name).is_err();
        self.window.filter(|_| unknown).map(|window| (name, window))
    }

    /// The target for what was written in `written_in` for the model `own`.
    ///
    /// For UI messages, which no model reads, the target is that of the model's own provider: what
    /// fits there is what they show.
    ///
    /// # Errors
    /// An unknown model.
    pub(crate) fn resolve_target(
        &self,
        own: Option<&str>,
        written_in: Option<Format>,
    ) -> Outcome<Target> {
        let model = default_model::choose_model(self.model.as_deref(), own, written_in, self.to);
        let format = self.request_format(&model)?;
        let mut target = Target::new(format, model);
        if let Some(window) = self.window.or(self.policy.limit_tokens) {
            target = target.window(window);
        }
        if let Some(reserve) = self.reserve {
            target = target.reserve(reserve);
        }
        if let Some(count) = self.count {
            target = target.count(count);
        }
        for (name, value) in &self.params {
            target = target.param(name, value.clone());
        }
        let marks = self.policy.cache_marks.then(MarkerPolicy::default);
        Ok(target
            .history(self.policy.history_policy())
            .marker_policy(marks))
    }

    /// The format of the request that is compiled for a model.
    fn request_format(&self, model: &str) -> Outcome<Format> {
        match self.to {
            // UI messages are no request. What fits is decided as for the model's own provider.
            Format::Ui => Ok(Format::of_provider(
                &self.catalogue().resolve(model)?.provider,
            )),
            Format::Items => Err(
                Failure::usage("items are not a request: no model reads them")
                    .with_hint("`contexture export --to items` writes the items of a conversation"),
            ),
            format => Ok(format),
        }
    }

    /// What is said beside the conversation to the model of a target: the fragments, and what the policy says.
    ///
    /// # Errors
    /// An unknown model, or guardrails that it cannot follow.
    pub(crate) fn contributions(&self, target: &Target) -> Outcome<Vec<Contribution>> {
        let mut said: Vec<Contribution> = self.system_contribution().into_iter().collect();
        if self.policy.state.is_some() || !self.policy.guardrails.is_empty() {
            let catalogue = self.catalogue();
            let spec = target.model_spec(&catalogue)?;
            let own = self.policy.contributions(&spec.capabilities);
            said.extend(own.map_err(|error| Failure::usage(format!("--policy: {error}")))?);
        }
        Ok(said)
    }

    fn system_contribution(&self) -> Option<Contribution> {
        if self.system.is_empty() {
            return None;
        }
        let content = Content::Fragments {
            fragments: self.system.clone(),
            renderer: Arc::clone(&self.renderer),
        };
        Some(Contribution::new("fragments", Band::System, content))
    }

    /// Compiles a document that is not stored.
    ///
    /// # Errors
    /// An unknown model, or the compiler's refusal.
    pub(crate) fn compile_transcript(
        &self,
        transcript: &Transcript,
        written_in: Option<Format>,
    ) -> Outcome<Compiled> {
        let mut target = self
            .resolve_target(transcript.model.as_deref(), written_in)?
            // It is the same request, made to fit.
            .request_settings(&self.with_offered_tools(transcript))
            // Nothing follows this call: there is no prefix to keep stable, so the window is filled.
            .history(self.policy.history_policy().into_one_call());
        // A snapshot or a route that the request names is part of what it asks for.
        if written_in == Some(target.format())
            && transcript.model.as_deref() == Some(target.model())
        {
            target = target.keep_model_name();
        }
        let catalogue = self.catalogue();
        let mut compiler = Compiler::new(&catalogue);
        if self.policy.compact.is_some() {
            let hints = self.policy.tools.tool_hints();
            compiler = compiler.with_manifests().with_tool_hints(hints);
        }
        if !transcript.instructions.is_empty() {
            let content = Content::Instructions(transcript.instructions.clone());
            compiler = compiler.with_contribution(Contribution::new(
                "instructions",
                Band::System,
                content,
            ));
        }
        for said in self.contributions(&target)? {
            compiler = compiler.with_contribution(said);
        }
        Ok(compiler.compile(&transcript.items, &target)?)
    }

    /// The request without the tools that the policy forbids or does not select, and without a choice of a forbidden one, which
    /// providers refuse.
    fn with_offered_tools<'t>(&self, request: &'t Transcript) -> Cow<'t, Transcript> {
        let tools = &self.policy.tools;
        if tools.allows_all() && tools.select.is_none() {
            return Cow::Borrowed(request);
        }
        let mut offered = request.clone();
        tools.retain_offered(&mut offered, request.items.iter());
        if let Some(ToolChoice::Function { name }) = &offered.options.tool_choice
            && !tools.allows(name)
        {
            offered.options.tool_choice = None;
        }
        Cow::Owned(offered)
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Catalogue(error) => error.into(),
            CompileError::Refused(refusal) => refusal.into(),
        }
    }
}
