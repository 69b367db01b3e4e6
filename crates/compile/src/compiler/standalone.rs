//! The front for those who have no store: items in, payload out.

use std::borrow::Cow;
use std::sync::Arc;

use contexture_catalogue::{Catalogue, CatalogueError, Encoding, ModelSpec};
use contexture_ir::{Item, Raw, RequestOptions, ToolDefinition};
use contexture_prompt_cache::{CacheRules, CacheState, CachedContent, MarkerPolicy};
use contexture_tokens::media::rules_of;
use contexture_tokens::{TokenCounter, counter_for};
use contexture_wire::{Dialect, Format, OptionMembers};

use crate::compiler::converter::adapt_dialect;
use crate::compiler::inline_manifests::{InlinedManifests, inline_manifests};
use crate::error::CompileError;
use crate::input::{
    CachePolicy, CalibratedRange, CompileInput, CompileRequest, Contribution, HistoryPolicy,
    PathItem, Plan, SharedAdapter, TargetAdapter,
};
use crate::pipeline::{Compiled, Scratch, compile};

/// A model to compile for, and how. What is not said comes from the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    format: Format,
    adapter: Option<SharedAdapter>,
    model: String,
    window: Option<u64>,
    reserve: Option<u64>,
    options: RequestOptions,
    params: Vec<(String, Raw)>,
    tools: Vec<ToolDefinition>,
    history: HistoryPolicy,
    marks: Option<MarkerPolicy>,
    cache: CacheState,
    content: Option<CachedContent>,
}

impl Target {
    /// A model behind a format.
    #[must_use]
    pub fn new(format: Format, model: impl Into<String>) -> Self {
        Self {
            format,
            adapter: None,
            model: model.into(),
            window: None,
            reserve: None,
            options: RequestOptions::default(),
            params: Vec::new(),
            tools: Vec::new(),
            history: HistoryPolicy::default(),
            marks: Some(MarkerPolicy::default()),
            cache: CacheState::Warm,
            content: None,
        }
    }

    /// A model behind Anthropic Messages.
    #[must_use]
    pub fn anthropic(model: impl Into<String>) -> Self {
        Self::new(Format::Anthropic, model)
    }

    /// A model behind OpenAI Chat Completions.
    #[must_use]
    pub fn openai_chat(model: impl Into<String>) -> Self {
        Self::new(Format::OpenAiChat, model)
    }

    /// A model behind OpenAI Responses.
    #[must_use]
    pub fn openai_responses(model: impl Into<String>) -> Self {
        Self::new(Format::OpenAiResponses, model)
    }

    /// A model behind Gemini `generateContent`.
    #[must_use]
    pub fn gemini(model: impl Into<String>) -> Self {
        Self::new(Format::Gemini, model)
    }

    /// A model behind a program's own [`TargetAdapter`].
    ///
    /// The catalogue need not know the model if the target states its [window](Self::window); its tokens are then
    /// estimated within wide bounds, and nothing is known of its prices.
    #[must_use]
    pub fn custom(adapter: Arc<dyn TargetAdapter>, model: impl Into<String>) -> Self {
        Self {
            adapter: Some(SharedAdapter::new(adapter)),
            ..Self::new(Format::Items, model)
        }
    }

    /// Tokens the model can hold, its answer included. Default: the catalogue's.
    #[must_use]
    pub const fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Tokens kept free for the answer. Default: the output limit of the options, else an eighth of
    /// the window, at most the model's output limit.
    #[must_use]
    pub const fn reserve(mut self, tokens: u64) -> Self {
        self.reserve = Some(tokens);
        self
    }

    /// How to answer.
    #[must_use]
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    /// A top-level field of the payload, verbatim. It wins over what the payload says there; where
    /// both are objects they are merged member by member, unless they are of different `type`s. One
    /// that names the output limit, the temperature or
    /// `top_p` sets that option, in whatever format, and wins over [`Target::options`].
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: Raw) -> Self {
        self.params.push((name.into(), value));
        self
    }

    /// The tools offered.
    #[must_use]
    pub fn tools(mut self, tools: Vec<ToolDefinition>) -> Self {
        self.tools = tools;
        self
    }

    /// These tools too, behind those there are.
    #[must_use]
    pub fn add_tools(mut self, tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// How much of the history is shown, and how.
    #[must_use]
    pub fn history(mut self, history: HistoryPolicy) -> Self {
        self.history = history;
        self
    }

    /// Where cache marks are set, for models whose cache is asked for by marks; `None` sets none.
    /// Default: all that help, for the usual time.
    #[must_use]
    pub const fn marker_policy(mut self, marks: Option<MarkerPolicy>) -> Self {
        self.marks = marks;
        self
    }

    /// Whether the provider's cache still holds what the last call wrote. Default: it does. A host
    /// that knows when that was says otherwise once the time is over, and rewriting costs nothing.
    #[must_use]
    pub const fn cache_state(mut self, state: CacheState) -> Self {
        self.cache = state;
        self
    }

    /// A cache object made beforehand ([`CacheAdvice`](crate::CacheAdvice) says when one pays,
    /// [`Payload::cache_object`](crate::Payload::cache_object) has the body that makes it). The payload names
    /// it and leaves out what it holds, if it begins with just that; else the object is ignored, and
    /// [`CacheReport::content`](crate::CacheReport::content) says why. Default: none.
    #[must_use]
    pub fn cached_content(mut self, content: CachedContent) -> Self {
        self.content = Some(content);
        self
    }

    /// The format; [`Format::Items`] for a target with an adapter, which is given items.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The adapter that writes the request; `None` for a target of a known format.
    #[must_use]
    pub const fn adapter(&self) -> Option<&SharedAdapter> {
        self.adapter.as_ref()
    }

    /// The name of the format, or of the adapter.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.adapter {
            Some(adapter) => adapter.name(),
            None => self.format.as_str(),
        }
    }

    /// What is known about the model.
    ///
    /// # Errors
    /// [`CatalogueError::UnknownModel`], unless the target has an adapter and states its window.
    pub fn model_spec<'c>(
        &self,
        catalogue: &'c Catalogue,
    ) -> Result<Cow<'c, ModelSpec>, CatalogueError> {
        match (catalogue.resolve(&self.model), &self.adapter, self.window) {
            (Ok(spec), ..) => Ok(Cow::Borrowed(spec)),
            (Err(_), Some(_), Some(window)) => {
                let mut spec = ModelSpec::new(&self.model, window, Encoding::Other);
                // What it can do is the adapter's to say; nothing is withheld on its behalf.
                spec.capabilities.tools = true;
                spec.capabilities.mid_conversation_system = true;
                Ok(Cow::Owned(spec))
            }
            (Err(error), ..) => Err(error),
        }
    }

    /// The model's name as given.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The request, with everything filled in.
    ///
    /// # Errors
    /// [`CatalogueError::UnknownModel`], with the names that resemble it; [`CatalogueError::WrongProvider`] for a model
    /// that nobody offers behind the format.
    pub fn build_request(&self, catalogue: &Catalogue) -> Result<CompileRequest, CatalogueError> {
        let spec = &*self.model_spec(catalogue)?;
        if self.adapter.is_none() {
            ensure_format_supported(spec, self.format)?;
        }
        let window = self.window.unwrap_or(spec.context_window);
        let (options, params) = self.split_params();
        let reserve = self.reserve.or(options.max_output_tokens);
        // An eighth leaves most of the window to the input and is still a long answer; a reserve above
        // the output limit would only waste room.
        let eighth = (window / 8).min(spec.output_limit.unwrap_or(u64::MAX));
        let reserve = reserve.unwrap_or(eighth);
        // Some models take less input than their window minus the answer: the window is lowered so
        // that the limit comes out right.
        let most = spec.input_limit.unwrap_or(u64::MAX);
        let mut dialect = Dialect::of(self.format);
        adapt_dialect(&mut dialect, spec);
        Ok(CompileRequest {
            dialect,
            adapter: self.adapter.clone(),
            model: spec.id.clone(),
            window: window.min(most.saturating_add(reserve)),
            reserve,
            options,
            params,
            tools: self.tools.clone(),
            offer: None,
            media: rules_of(spec).clone(),
            calibrated_range: None,
            tool_prompt: spec.tool_prompt,
            prefill: spec.capabilities.prefill,
            history: self.history.clone(),
            cache: CachePolicy {
                // What a provider's cache does with a request that an adapter wrote is not known.
                rules: match self.adapter {
                    Some(_) => CacheRules::none(self.format),
                    None => CacheRules::for_model(spec, self.format),
                },
                marker_policy: self.marks,
                prices: spec.prices.clone(),
                state: self.cache,
                content: self.content.clone(),
            },
        })
    }

    /// The options with those that parameters say, and the parameters that are left.
    fn split_params(&self) -> (RequestOptions, Vec<(String, Raw)>) {
        let mut options = self.options.clone();
        // Parameters that say what an option says become that option: otherwise the payload would name
        // an output limit that the budget does not know.
        let known = |(name, value): &&(String, Raw)| {
            // Some formats keep their options in an object of their own.
            if option_members().any(|one| one.holder == Some(name.as_str()))
                && let Some(fields) = value.fields()
            {
                for (name, value) in fields.iter() {
                    take_option(&mut options, name, &Raw::from(value));
                }
            }
            !take_option(&mut options, name, value)
        };
        let params = self.params.iter().filter(known).cloned().collect();
        (options, params)
    }
}

/// Whether somebody offers the model behind the format. Chat Completions are taken by all providers in one way or
/// another, and several take Anthropic's messages beside their own; but OpenAI, Anthropic and Google do not take each
/// other's formats, and Gemini's is nobody else's. A model without a provider may stand behind anything.
fn ensure_format_supported(spec: &ModelSpec, format: Format) -> Result<(), CatalogueError> {
    if spec.provider.is_empty() {
        return Ok(());
    }
    if format.is_offered_for(&spec.provider) {
        return Ok(());
    }
    Err(CatalogueError::WrongProvider {
        model: spec.id.clone(),
        provider: spec.provider.clone(),
        format: format.as_str(),
        native: Format::of_provider(&spec.provider).as_str(),
    })
}

/// Sets the option that a parameter of this name and value is in any format; `false` for any other.
/// So a parameter wins over an option of the document it goes with, whatever either is called.
fn take_option(options: &mut RequestOptions, name: &str, value: &Raw) -> bool {
    if option_members().any(|one| one.output_limit.contains(&name)) {
        return value
            .parse_as()
            .map(|limit| options.max_output_tokens = Some(limit))
            .is_ok();
    }
    if option_members().any(|one| one.temperature == name) {
        return value
            .parse_as()
            .map(|number| options.temperature = Some(number))
            .is_ok();
    }
    option_members().any(|one| one.top_p == name)
        && value
            .parse_as()
            .map(|number| options.top_p = Some(number))
            .is_ok()
}

fn option_members() -> impl Iterator<Item = &'static OptionMembers> {
    let providers = Format::PROVIDERS.into_iter();
    providers.map(|format| format.spec().option_members())
}

/// Compiles lists of items, without a store and without a plan.
///
/// ```
/// use contexture_catalogue::Catalogue;
/// use contexture_compile::{Compiler, Contribution, Target};
/// use contexture_ir::{Message, Role};
///
/// let items = [Message::text(Role::User, "What is the capital of Mali?").into()];
/// let compiler = Compiler::new(Catalogue::builtin())
///     .with_contribution(Contribution::system("instructions", "Answer in one word."));
/// let compiled = compiler.compile(&items, &Target::openai_chat("gpt-4o").window(16_000))?;
/// assert!(compiled.payload.to_json().contains("Answer in one word."));
/// println!("{}", compiled.report);
/// # Ok::<(), contexture_compile::CompileError>(())
/// ```
#[derive(Debug)]
pub struct Compiler<'a> {
    catalogue: &'a Catalogue,
    contributions: Vec<Contribution>,
    counter: Option<&'a dyn TokenCounter>,
    narrowing: Option<CalibratedRange>,
    manifests: bool,
}

/// How often what a manifest pushed out is taken into it.
const ROUNDS: usize = 4;

impl<'a> Compiler<'a> {
    /// A compiler that knows the catalogue's models.
    #[must_use]
    pub const fn new(catalogue: &'a Catalogue) -> Self {
        Self {
            catalogue,
            contributions: Vec::new(),
            counter: None,
            narrowing: None,
            manifests: false,
        }
    }

    /// Stands a manifest for what does not fit: the files, commands, errors, identifiers and numbers of
    /// it. Without, what does not fit is left out.
    #[must_use]
    pub const fn with_manifests(mut self) -> Self {
        self.manifests = true;
        self
    }

    /// Says this too, in every compile.
    #[must_use]
    pub fn with_contribution(mut self, contribution: Contribution) -> Self {
        self.contributions.push(contribution);
        self
    }

    /// Counts with this instead of the model's own counter.
    #[must_use]
    pub const fn with_counter(mut self, counter: &'a dyn TokenCounter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Narrows counts so; see [`Calibration`](crate::Calibration). Default: they are not.
    #[must_use]
    pub const fn with_calibrated_range(mut self, narrowing: Option<CalibratedRange>) -> Self {
        self.narrowing = narrowing;
        self
    }

    /// Compiles the items for the target.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn compile(&self, items: &[Item], target: &Target) -> Result<Compiled, CompileError> {
        self.compile_with(items, target, &mut Scratch::new())
    }

    /// As [`Self::compile`], without counting and writing again what earlier compiles with this scratch did.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn compile_with(
        &self,
        items: &[Item],
        target: &Target,
        scratch: &mut Scratch,
    ) -> Result<Compiled, CompileError> {
        let mut request = target.build_request(self.catalogue)?;
        request.calibrated_range = self.narrowing;
        let encoding = target.model_spec(self.catalogue)?.encoding;
        let counter = self.counter.unwrap_or(counter_for(encoding));
        // Without a store there is no earlier plan: each call is compiled for itself.
        let mut inlined = InlinedManifests {
            path: PathItem::from_items(items.iter().cloned()),
            covers: Vec::new(),
        };
        let mut run = |inlined: &InlinedManifests| {
            let input = CompileInput {
                path: &inlined.path,
                covers: &inlined.covers,
                passes: &[],
                contributions: &self.contributions,
                plan: &Plan::default(),
                request: &request,
                counter,
                cancel: None,
            };
            compile(&input, scratch)
        };
        let mut compiled = run(&inlined)?;
        // Each manifest takes room and can push out more, which the next round covers as well. A few
        // rounds settle it; the last one that compiled stands.
        for _ in 0..if self.manifests { ROUNDS } else { 0 } {
            let omitted = &compiled.report.omitted;
            let Some(next) =
                inline_manifests(&inlined, items.len(), omitted, target.format, counter)
            else {
                break;
            };
            // A manifest for which there is no room is none.
            let Ok(again) = run(&next) else {
                break;
            };
            (inlined, compiled) = (next, again);
        }
        Ok(compiled)
    }
}
