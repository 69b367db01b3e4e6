//! A model to compile for, and how: what a program says, filled in from the catalogue.

use std::borrow::Cow;
use std::sync::Arc;

use contexture_catalogue::{Catalogue, CatalogueError, ModelSpec, Overflow};
use contexture_ir::{Extra, Raw, RequestOptions, ToolDefinition, Transcript};
use contexture_prompt_cache::{CacheRules, CacheState, CachedContent, MarkerPolicy};
use contexture_tokens::media::rules_of;
use contexture_wire::{Dialect, Format, OptionMembers};

use crate::compiler::converter::adapt_dialect;
use crate::input::{
    BudgetCount, CachePolicy, CompileRequest, HistoryPolicy, RetryBudget, SharedAdapter,
    TargetAdapter,
};

/// A model to compile for, and how. What is not said comes from the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub(super) format: Format,
    adapter: Option<SharedAdapter>,
    model: String,
    keeps_model_name: bool,
    window: Option<u64>,
    reserve: Option<u64>,
    count: Option<BudgetCount>,
    is_likely_where_refused: bool,
    tool_limit: Option<usize>,
    options: RequestOptions,
    fields: Extra,
    params: Vec<(String, Raw)>,
    tools: Vec<ToolDefinition>,
    history: HistoryPolicy,
    marks: Option<MarkerPolicy>,
    cache: CacheState,
    content: Option<CachedContent>,
}

impl Target {
    /// A model behind a format.
    ///
    /// ```
    /// use contexture_compile::Target;
    /// use contexture_wire::Format;
    ///
    /// assert_eq!(Target::new(Format::Gemini, "gemini-2.5-pro"), Target::gemini("gemini-2.5-pro"));
    /// ```
    #[must_use]
    pub fn new(format: Format, model: impl Into<String>) -> Self {
        Self {
            format,
            adapter: None,
            model: model.into(),
            keeps_model_name: false,
            window: None,
            reserve: None,
            count: None,
            is_likely_where_refused: false,
            tool_limit: None,
            options: RequestOptions::default(),
            fields: Extra::new(),
            params: Vec::new(),
            tools: Vec::new(),
            history: HistoryPolicy::default(),
            marks: Some(MarkerPolicy::default()),
            cache: CacheState::Warm,
            content: None,
        }
    }

    /// A model behind Anthropic Messages.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert_eq!(Target::anthropic("claude-sonnet-4-5").name(), "anthropic");
    /// ```
    #[must_use]
    pub fn anthropic(model: impl Into<String>) -> Self {
        Self::new(Format::Anthropic, model)
    }

    /// A model behind OpenAI Chat Completions.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert_eq!(Target::openai_chat("gpt-4o").name(), "openai-chat");
    /// ```
    #[must_use]
    pub fn openai_chat(model: impl Into<String>) -> Self {
        Self::new(Format::OpenAiChat, model)
    }

    /// A model behind OpenAI Responses.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert_eq!(Target::openai_responses("gpt-4.1").name(), "openai-responses");
    /// ```
    #[must_use]
    pub fn openai_responses(model: impl Into<String>) -> Self {
        Self::new(Format::OpenAiResponses, model)
    }

    /// A model behind Gemini `generateContent`.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert_eq!(Target::gemini("gemini-2.5-pro").name(), "gemini");
    /// ```
    #[must_use]
    pub fn gemini(model: impl Into<String>) -> Self {
        Self::new(Format::Gemini, model)
    }

    /// A model behind a program's own [`TargetAdapter`].
    ///
    /// The catalogue need not know the model if the target states its [window](Self::window); its tokens are then
    /// estimated within wide bounds, and nothing is known of its prices.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use contexture_compile::{AdapterError, Compiler, Target, TargetAdapter};
    /// use contexture_ir::{Message, Raw, Role, Transcript};
    /// # use contexture_catalogue::Catalogue;
    ///
    /// #[derive(Debug)]
    /// struct LineFormat;
    ///
    /// impl TargetAdapter for LineFormat {
    ///     fn name(&self) -> &str {
    ///         "lines"
    ///     }
    ///     fn encode_request(&self, request: &Transcript) -> Result<Raw, AdapterError> {
    ///         let lines: Vec<String> = request.items.iter().map(|item| item.text()).collect();
    ///         Raw::from_value(&lines).map_err(|error| AdapterError::new(error.to_string()))
    ///     }
    /// }
    ///
    /// let target = Target::custom(Arc::new(LineFormat), "house-model").window(8_000);
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target)?;
    /// assert_eq!(compiled.payload.to_json(), r#"["Hello"]"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn custom(adapter: Arc<dyn TargetAdapter>, model: impl Into<String>) -> Self {
        Self {
            adapter: Some(SharedAdapter::new(adapter)),
            ..Self::new(Format::Items, model)
        }
    }

    /// Tokens the model can hold, its answer included. Default: the catalogue's.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let request = Target::openai_chat("gpt-4o").window(16_000).build_request(Catalogue::builtin())?;
    /// assert_eq!((request.window, request.reserve), (16_000, 2_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// The most tools that the model takes; more are refused. Default: the catalogue's.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let request = Target::openai_chat("gpt-4o").tool_limit(64).build_request(Catalogue::builtin())?;
    /// assert_eq!(request.tool_limit, Some(64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn tool_limit(mut self, tools: usize) -> Self {
        self.tool_limit = Some(tools);
        self
    }

    /// Tokens kept free for the answer. Default: the output limit of the options, else an eighth of
    /// the window, at most the model's output limit.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let target = Target::openai_chat("gpt-4o").window(16_000).reserve(500);
    /// assert_eq!(target.build_request(Catalogue::builtin())?.reserve, 500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn reserve(mut self, tokens: u64) -> Self {
        self.reserve = Some(tokens);
        self
    }

    /// The count that the budget goes by. Default: the upper bound, which fits whatever the provider counts.
    ///
    /// ```
    /// use contexture_compile::BudgetCount;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let target = Target::anthropic("claude-sonnet-4-5").count(BudgetCount::Likely);
    /// assert_eq!(target.build_request(Catalogue::builtin())?.count, BudgetCount::Likely);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn count(mut self, count: BudgetCount) -> Self {
        self.count = Some(count);
        self
    }

    /// Goes by the likely count where the catalogue says that the model's provider refuses what is too long, and the request
    /// does not ask to be cut; a stated count wins. For callers that send the request to the provider's own host and answer
    /// a refusal with another compile, as runs and the proxy do.
    ///
    /// ```
    /// use contexture_compile::BudgetCount::{Likely, Upper};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let catalogue = Catalogue::builtin();
    /// let count = |target: Target| target.likely_where_refused().build_request(catalogue).map(|request| request.count);
    /// assert_eq!(count(Target::anthropic("claude-sonnet-4-5"))?, Likely);
    /// assert_eq!(count(Target::anthropic("claude-sonnet-4-5").count(Upper))?, Upper);
    /// // Of other hosts nothing is known: some drop a part of the request without a word.
    /// assert_eq!(count(Target::openai_chat("our-model").window(32_768))?, Upper);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn likely_where_refused(mut self) -> Self {
        self.is_likely_where_refused = true;
        self
    }

    /// The budget of a call that follows one which the provider refused as too long; see [`RetryBudget`].
    #[must_use]
    pub const fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.count = Some(BudgetCount::Upper);
        self.window = Some(budget.window);
        // Said, as what is not said follows from the window.
        self.reserve = Some(budget.reserve);
        self
    }

    /// How to answer.
    ///
    /// ```
    /// use contexture_ir::RequestOptions;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// let mut options = RequestOptions::default();
    /// options.max_output_tokens = Some(1_000);
    /// let request = Target::openai_chat("gpt-4o").options(options).build_request(Catalogue::builtin())?;
    /// assert_eq!(request.reserve, 1_000, "the answer has room for what it may use");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    /// Takes over what a request says beside its messages: its options, its tools, and the members that only its own
    /// format has. What this target has been given already wins: each option, and the tools as a whole, with the choice
    /// among them. In the request's format the members are written as they came; in another one the report lists them
    /// as losses.
    ///
    /// An output limit is lowered to the stated reserve. One above half of the stated window was made for a larger
    /// window and is not taken over.
    ///
    /// ```
    /// use contexture_compile::Compiler;
    /// use contexture_wire::{Format, lift};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// let body = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}],
    ///                "temperature": 0.3, "service_tier": "flex"}"#;
    /// let request = lift(Format::OpenAiChat, body)?.transcript;
    /// let target = Target::openai_chat("gpt-4o").request_settings(&request);
    /// let compiled = Compiler::new(Catalogue::builtin()).compile(&request.items, &target)?;
    /// assert!(compiled.payload.to_json().contains(r#""service_tier":"flex""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn request_settings(mut self, request: &Transcript) -> Self {
        let limit = self.inherited_output_limit(request.options.max_output_tokens);
        let theirs = request.options.clone();
        let own = self.options;
        self.options = RequestOptions {
            max_output_tokens: own.max_output_tokens.or(limit),
            temperature: own.temperature.or(theirs.temperature),
            top_p: own.top_p.or(theirs.top_p),
            stop: match own.stop.is_empty() {
                true => theirs.stop,
                false => own.stop,
            },
            tool_choice: own.tool_choice,
            parallel_tool_calls: own.parallel_tool_calls,
            response_format: own.response_format.or(theirs.response_format),
            reasoning: own.reasoning.or(theirs.reasoning),
            stream: own.stream.or(theirs.stream),
        };
        // A choice among tools means nothing without them.
        if self.tools.is_empty() {
            self.tools.clone_from(&request.tools);
            let options = &mut self.options;
            options.tool_choice = options.tool_choice.take().or(theirs.tool_choice);
            options.parallel_tool_calls =
                options.parallel_tool_calls.or(theirs.parallel_tool_calls);
        }
        self.fields = request.extra.clone();
        self
    }

    /// Sends the model's name as it was given. Default: the name that the catalogue has for it, without a route, a tag or
    /// a date that it does not know.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let target = Target::openai_chat("openai/gpt-4o");
    /// let catalogue = Catalogue::builtin();
    /// assert_eq!(target.build_request(catalogue)?.model, "gpt-4o");
    /// assert_eq!(target.keep_model_name().build_request(catalogue)?.model, "openai/gpt-4o");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn keep_model_name(mut self) -> Self {
        self.keeps_model_name = true;
        self
    }

    /// The output limit of a request that was made for another window, or for none in particular.
    fn inherited_output_limit(&self, limit: Option<u64>) -> Option<u64> {
        match (limit?, self.reserve, self.window) {
            // The answer cannot be longer than what is kept free for it.
            (limit, Some(reserve), _) => Some(limit.min(reserve)),
            (limit, None, Some(window)) if limit > window / 2 => None,
            (limit, ..) => Some(limit),
        }
    }

    /// A top-level field of the payload, verbatim. It wins over what the payload says there; where
    /// both are objects they are merged member by member, unless they are of different `type`s. One
    /// that names the output limit, the temperature or
    /// `top_p` sets that option, in whatever format, and wins over [`Target::options`].
    ///
    /// ```
    /// use contexture_compile::Compiler;
    /// use contexture_ir::{Message, Raw, Role};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// let target = Target::openai_chat("gpt-4o").param("service_tier", Raw::string("flex"));
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target)?;
    /// assert!(compiled.payload.to_json().contains(r#""service_tier":"flex""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: Raw) -> Self {
        self.params.push((name.into(), value));
        self
    }

    /// The tools offered.
    ///
    /// ```
    /// use contexture_compile::Compiler;
    /// use contexture_condense::read_tool;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// # use contexture_ir::{Message, Role};
    ///
    /// let target = Target::openai_chat("gpt-4o").tools(vec![read_tool()]);
    /// # let items = [Message::text(Role::User, "Hello").into()];
    /// let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target)?;
    /// assert!(compiled.payload.to_json().contains("read_context"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tools(mut self, tools: Vec<ToolDefinition>) -> Self {
        self.tools = tools;
        self
    }

    /// These tools too, behind those there are.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// # use contexture_condense::read_tool;
    /// let target = Target::openai_chat("gpt-4o").add_tools([read_tool()]);
    /// assert_eq!(target.build_request(Catalogue::builtin())?.tools.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn add_tools(mut self, tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// How much of the history is shown, and how.
    ///
    /// ```
    /// use contexture_compile::HistoryPolicy;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// // One call and no further ones: nothing is rewritten for a later cache.
    /// let policy = HistoryPolicy::for_one_call();
    /// let request = Target::openai_chat("gpt-4o").history(policy.clone()).build_request(Catalogue::builtin())?;
    /// assert_eq!(request.history, policy);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn history(mut self, history: HistoryPolicy) -> Self {
        self.history = history;
        self
    }

    /// Where cache marks are set, for models whose cache is asked for by marks; `None` sets none.
    /// Default: all that help, for the usual time.
    ///
    /// ```
    /// use contexture_compile::{Compiler, Contribution};
    /// use contexture_ir::{Message, Role};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// let compiler = Compiler::new(Catalogue::builtin())
    ///     .with_contribution(Contribution::system("manual", "Be brief. ".repeat(2_000)));
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let target = Target::anthropic("claude-sonnet-4-5");
    /// assert!(compiler.compile(&items, &target)?.payload.to_json().contains("cache_control"));
    /// let target = target.marker_policy(None);
    /// assert!(!compiler.compile(&items, &target)?.payload.to_json().contains("cache_control"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn marker_policy(mut self, marks: Option<MarkerPolicy>) -> Self {
        self.marks = marks;
        self
    }

    /// Whether the provider's cache still holds what the last call wrote. Default: it does. A host
    /// that knows when that was says otherwise once the time is over, and rewriting costs nothing.
    ///
    /// ```
    /// use contexture_prompt_cache::CacheState;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// // The last call was hours ago.
    /// let target = Target::anthropic("claude-sonnet-4-5").cache_state(CacheState::Cold);
    /// assert_eq!(target.build_request(Catalogue::builtin())?.cache.state, CacheState::Cold);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn cache_state(mut self, state: CacheState) -> Self {
        self.cache = state;
        self
    }

    /// A cache object made beforehand ([`CacheAdvice`](crate::CacheAdvice) says when one pays,
    /// [`Payload::cache_object`](crate::Payload::cache_object) has the body that makes it). The payload names
    /// it and leaves out what it holds, if it begins with just that; else the object is ignored, and
    /// [`CacheReport::content`](crate::CacheReport::content) says why. Default: none.
    ///
    /// ```
    /// use contexture_compile::{Compiler, Contribution};
    /// use contexture_ir::{Message, Role};
    /// use contexture_prompt_cache::CachedContent;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    ///
    /// let compiler = Compiler::new(Catalogue::builtin())
    ///     .with_contribution(Contribution::system("manual", "Be brief. ".repeat(2_000)));
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let target = Target::gemini("gemini-2.5-pro");
    /// let payload = compiler.compile(&items, &target)?.payload;
    /// // The provider has made an object of the first segment and named it.
    /// let content = CachedContent {
    ///     name: "cachedContents/42".to_owned(),
    ///     segments: 1,
    ///     prefix: payload.cache_prefix(1),
    /// };
    /// let named = compiler.compile(&items, &target.cached_content(content))?.payload;
    /// assert!(named.to_json().contains("cachedContents/42"));
    /// assert!(named.len() < payload.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cached_content(mut self, content: CachedContent) -> Self {
        self.content = Some(content);
        self
    }

    /// The format; [`Format::Items`] for a target with an adapter, which is given items.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// use contexture_wire::Format;
    /// assert_eq!(Target::anthropic("claude-sonnet-4-5").format(), Format::Anthropic);
    /// ```
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The adapter that writes the request; `None` for a target of a known format.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert!(Target::anthropic("claude-sonnet-4-5").adapter().is_none());
    /// ```
    #[must_use]
    pub const fn adapter(&self) -> Option<&SharedAdapter> {
        self.adapter.as_ref()
    }

    /// The tools that every call for this target offers.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// # use contexture_condense::read_tool;
    /// let target = Target::openai_chat("gpt-4o").add_tools([read_tool()]);
    /// assert_eq!(target.tool_definitions().len(), 1);
    /// ```
    #[must_use]
    pub fn tool_definitions(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// The name of the format, or of the adapter.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert_eq!(Target::openai_chat("gpt-4o").name(), "openai-chat");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.adapter {
            Some(adapter) => adapter.name(),
            None => self.format.as_str(),
        }
    }

    /// What is known about the model.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let target = Target::openai_chat("gpt-4o");
    /// assert!(target.model_spec(Catalogue::builtin())?.context_window >= 128_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A model that the catalogue does not know has no prices, and its tokens are estimates.
    ///
    /// # Errors
    /// [`CatalogueError::UnknownModel`], unless the target states its window.
    pub fn model_spec<'c>(
        &self,
        catalogue: &'c Catalogue,
    ) -> Result<Cow<'c, ModelSpec>, CatalogueError> {
        match (catalogue.resolve(&self.model), self.window) {
            (Ok(spec), _) => Ok(Cow::Borrowed(spec)),
            // A model of a program's own, or one that came out since: its window is enough to compile for it.
            (Err(CatalogueError::UnknownModel { .. }), Some(window)) => {
                let mut spec = ModelSpec::of_unknown(&self.model, window);
                // What it takes besides is the adapter's to say.
                spec.capabilities.mid_conversation_system = self.adapter.is_some();
                Ok(Cow::Owned(spec))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The model's name as given.
    ///
    /// ```
    /// # use contexture_compile::Target;
    /// assert_eq!(Target::openai_chat("gpt-4o").model(), "gpt-4o");
    /// ```
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The request, with everything filled in.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// let error = Target::openai_chat("gpt-4oo").build_request(Catalogue::builtin()).unwrap_err();
    /// assert!(error.to_string().contains("gpt-4o"), "names that resemble it are listed");
    /// ```
    ///
    /// # Errors
    /// [`CatalogueError::UnknownModel`], with the names that resemble it; [`CatalogueError::WrongProvider`] for a model
    /// that nobody offers behind the format.
    pub fn build_request(&self, catalogue: &Catalogue) -> Result<CompileRequest, CatalogueError> {
        self.build_request_for(&*self.model_spec(catalogue)?)
    }

    /// As [`build_request`](Self::build_request), where the model is known already.
    pub(super) fn build_request_for(
        &self,
        spec: &ModelSpec,
    ) -> Result<CompileRequest, CatalogueError> {
        if self.adapter.is_none() {
            ensure_format_supported(spec, self.format)?;
        }
        let window = self.window.unwrap_or(spec.context_window);
        let (options, params) = self.split_params();
        let reserve = self.reserve.or(options.max_output_tokens);
        let reserve = reserve.unwrap_or_else(|| default_reserve(spec, window));
        // Some models take less input than their window minus the answer: the window is lowered so
        // that the limit comes out right.
        let most = spec.input_limit.unwrap_or(u64::MAX);
        let mut dialect = Dialect::of(self.format);
        adapt_dialect(&mut dialect, spec);
        Ok(CompileRequest {
            dialect,
            adapter: self.adapter.clone(),
            model: match self.keeps_model_name {
                true => self.model.clone(),
                false => spec.id.clone(),
            },
            window: window.min(most.saturating_add(reserve)),
            reserve,
            options,
            fields: self.fields.clone(),
            params,
            tools: self.tools.clone(),
            offer: None,
            media: rules_of(spec).clone(),
            calibrated_range: None,
            count: self.count.unwrap_or_else(|| self.default_count(spec)),
            tool_prompt: spec.tool_prompt,
            prefill: spec.capabilities.prefill,
            // What an adapter sends of thinking is its own business.
            bound_thinking: spec.capabilities.bound_thinking && self.adapter.is_none(),
            tool_limit: self.tool_limit.or(spec.tool_limit),
            history: self.history.clone(),
            cache: self.cache_policy(spec),
        })
    }

    /// The likely count is for providers that refuse what is too long; of an adapter's host nothing is known, and a request
    /// may ask the provider to cut it instead.
    fn default_count(&self, spec: &ModelSpec) -> BudgetCount {
        let format = self.format.spec();
        let fields = self.fields.wire_fields(self.format.as_str());
        let fields = fields.iter().map(|(name, value)| (name, value.get()));
        let params = self.params.iter();
        let mut members = fields.chain(params.map(|(name, value)| (name.as_str(), value.get())));
        let refuses = self.is_likely_where_refused
            && spec.overflow == Overflow::Refuses
            && self.adapter.is_none();
        match refuses && !members.any(|(name, value)| format.asks_to_cut(name, value)) {
            true => BudgetCount::Likely,
            false => BudgetCount::Upper,
        }
    }

    fn cache_policy(&self, spec: &ModelSpec) -> CachePolicy {
        CachePolicy {
            // What a provider's cache does with a request that an adapter wrote is not known.
            rules: match self.adapter {
                Some(_) => CacheRules::none(self.format),
                None => CacheRules::for_model(spec, self.format),
            },
            marker_policy: self.marks,
            prices: spec.prices.clone(),
            state: self.cache,
            content: self.content.clone(),
        }
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

/// Returns the tokens that are kept free for the answer where nothing else says.
fn default_reserve(spec: &ModelSpec, window: u64) -> u64 {
    // An eighth leaves most of the window to the input and is still a long answer; a reserve above
    // the output limit would only waste room.
    (window / 8).min(spec.output_limit.unwrap_or(u64::MAX))
}
