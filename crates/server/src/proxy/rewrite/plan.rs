//! What a policy makes of a request: the conversation compiled at what the client sent, in the place of its history.
//!
//! It is sent only where it is another request, fits, and costs less, is the only one that fits, or has something to say
//! that the client's has not. Not here: what is shown of a history (`contexture-compile`), which policy (`choice`).

use std::time::Duration;

use bytes::Bytes;
use contexture::compile::{
    CacheUsage, CalibratedRange, Clear, ClearPolicy, CompileError, Compiled, CountedRequest,
    HistoryPolicy, MarkerPolicy, Outline, PreviewPolicy, Previewing, Target, TextSize, Window,
};
use contexture::engine::Trigger;
use contexture::ir::{Item, Raw, ToolDefinition, Transcript};
use contexture::{
    CompileOptions, CompiledCall, Conversation, Engine, EngineError, Format, Ingested,
    PrepareOptions,
};

use crate::config::{CostCondition, PolicyConfig, WindowConfig};
use crate::proxy::capture::ingest::{IngestedRequest, ParsedRequest};
use crate::proxy::failure::ProxyFailure;
use crate::proxy::rewrite::cost_check::CostCheck;
use crate::proxy::rewrite::injected_layers::{has_layer_content, inject_layers};
use crate::proxy::rewrite::replace_history::replace_history;
use crate::proxy::rewrite::select_tools::select_tools;
use crate::proxy::server_tools::{OfferPermission, ServerTool, ServerTools, forbid_tool_calls};
use crate::state::cost_accounts::{BookedCall, CostAccount, CostAccounts, PriceTerms};

/// Larger than every window.
const UNLIMITED_WINDOW: u64 = 1 << 40;

/// A request that was looked at.
#[derive(Debug)]
pub(crate) struct PricedRequest {
    pub(crate) account: CostAccount,
    pub(crate) terms: PriceTerms,
    /// When it was looked at, which is when it is sent; for a round of ours when that was.
    pub(crate) at_ms: u64,
    /// What the client sent.
    pub(crate) original: Outline,
    /// What was counted of it.
    pub(crate) counting: CountedRequest,
    /// What of it is expected to be read from the cache.
    pub(crate) predicted: CacheUsage,
    /// What is to be sent in its place, if anything is.
    pub(crate) rewritten: Option<Box<RewrittenRequest>>,
}

/// What is sent in the place of a request.
#[derive(Debug)]
pub(crate) struct RewrittenRequest {
    pub(crate) body: Bytes,
    pub(crate) call: CompiledCall,
    pub(crate) outline: Outline,
    /// What of it is expected to be read from the cache.
    pub(crate) predicted: CacheUsage,
    /// How many tokens less than the client's.
    pub(crate) saved: i64,
    /// How to go on, where it offers tools of ours.
    pub(crate) plan: Option<Box<RewritePlan>>,
}

/// How a request is made: what of it is the client's, and what is not.
#[derive(Debug)]
pub(crate) struct RewritePlan {
    policy: PolicyConfig,
    format: Format,
    model: String,
    request: ParsedRequest,
    changes: RequestChanges,
    /// What a cache of the client's requests is not shared across: the key that a compile gives them is not sent.
    cache_scope: String,
    /// Whether what came would not fit.
    is_over_window: bool,
    server_tools: ServerTools,
}

/// What of a request is changed, beside what is said with it.
#[derive(Clone, Debug)]
struct RequestChanges {
    /// Those of the client's tools that are offered.
    client_tools: Vec<ToolDefinition>,
    /// How much of the history is shown.
    history: HistoryPolicy,
    /// The marks that are set.
    marks: Option<MarkerPolicy>,
}

/// Which of the requests for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolRound {
    /// The client's.
    First,
    /// One of ours, with what our tools gave.
    Later,
    /// The same, in which the model may call no tool.
    Last,
}

impl PricedRequest {
    /// Takes down what was sent. Only the first round is the client's: the others would not have been.
    pub(crate) fn record_call(
        &self,
        accounts: &CostAccounts,
        sent: Option<&RewrittenRequest>,
        round: ToolRound,
    ) -> BookedCall {
        let outline = sent.map_or(&self.original, |sent| &sent.outline);
        let passed = (round == ToolRound::First).then_some(&self.original);
        accounts.record_call(&self.account, &self.terms, outline, passed, self.at_ms)
    }
}

/// The time, as caches are weighed by.
pub(crate) fn now_ms(engine: &Engine) -> u64 {
    u64::try_from(engine.now_ms()).unwrap_or(0)
}

/// How long a request waits to be rewritten.
pub(crate) const fn rewrite_timeout(policy: &PolicyConfig) -> Duration {
    Duration::from_millis(policy.ingest_timeout_ms)
}

/// What to send in the place of what was read and stored. `None`: nobody can say, as the provider holds the history.
///
/// # Errors
/// The model is not known, or the compiler refuses.
pub(crate) async fn rewrite_request(
    accounts: &CostAccounts,
    policy: PolicyConfig,
    format: Format,
    stored: &mut IngestedRequest,
    read: ParsedRequest,
) -> Result<Option<PricedRequest>, ProxyFailure> {
    if read.has_provider_history() {
        return Ok(None);
    }
    inject_layers(&policy, format, stored, &read)
        .await
        .map_err(|error| rewrite_failure(&error))?;
    let ingested = &mut stored.ingested;
    let chat = ingested.chat.clone();
    let catalogue = chat.engine().catalogue();
    let model = read.transcript.model.clone();
    let model = model.ok_or_else(|| ProxyFailure::new("rewrite", "the request names no model"))?;
    let spec = catalogue
        .resolve(&model)
        .map_err(|error| rewrite_failure(&error))?;
    let mut recipe = RewritePlan {
        changes: RequestChanges {
            client_tools: read.transcript.tools.clone(),
            history: history_policy(&policy),
            marks: policy.cache_marks.then(MarkerPolicy::default),
        },
        policy,
        format,
        model,
        request: read,
        cache_scope: String::new(),
        is_over_window: false,
        server_tools: ServerTools::from_layers(&chat),
    };
    let target = recipe.compile_target();
    let request = target
        .build_request(catalogue)
        .map_err(|error| rewrite_failure(&error))?;
    let narrowing = chat.calibrated_range(&request).await;
    // Written by the hand that writes what may stand for it, so that only what differs differs.
    let as_it_came = |read: &ParsedRequest, narrowing| {
        compile_original(&chat, &target, &read.transcript, narrowing)
            .map_err(|error| rewrite_failure(&error))
    };
    let mut whole = as_it_came(&recipe.request, narrowing)?;
    let space = request.window.saturating_sub(request.reserve);
    recipe.is_over_window = whole.report.totals.tokens > space;
    if let Some(most) = recipe.policy.tools.select {
        recipe.changes.client_tools = select_tools(most, &recipe.request.transcript);
    }
    let call = recipe.compile_with_read_tool(ingested).await?;
    if call.calibrated_range() != narrowing {
        // Counted as the call is, too.
        whole = as_it_came(&recipe.request, call.calibrated_range())?;
    }
    let original = whole.payload.outline_with_markers();
    recipe.cache_scope.clone_from(&original.scope);
    let terms = PriceTerms::for_model(spec, format);
    let owner = chat.owner().clone();
    let account = (owner, chat.id().clone(), request.model.clone());
    let scales = CostCheck {
        accounts,
        account: &account,
        terms: &terms,
        original: &original,
        at_ms: now_ms(chat.engine()),
        ignores_cost: recipe.is_over_window || recipe.policy.pays == CostCondition::Fits,
        sets_marks: recipe.policy.cache_marks,
    };
    let rewritten = match recipe.choose_call(call, ingested, &scales).await? {
        None => None,
        Some((call, outline)) => Some(RewrittenRequest {
            saved: token_count(&original).saturating_sub(token_count(&outline)),
            predicted: scales.predict_usage(&outline),
            ..recipe.build_rewritten(&chat, call, outline)?
        }),
    };
    let (predicted, at_ms) = (scales.predict_usage(&original), scales.at_ms);
    let own = (!recipe.server_tools.is_empty()).then(|| Box::new(recipe));
    Ok(Some(PricedRequest {
        predicted,
        rewritten: rewritten.map(|rewritten| {
            Box::new(RewrittenRequest {
                plan: own,
                ..rewritten
            })
        }),
        account,
        terms,
        at_ms,
        original,
        counting: CountedRequest::from(&whole.report),
    }))
}

impl RewritePlan {
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// The tools of ours that it offers.
    pub(crate) const fn server_tools(&self) -> &ServerTools {
        &self.server_tools
    }

    /// What is to be sent, this call or another, with its outline; `None`: what the client sent.
    async fn choose_call(
        &mut self,
        call: CompiledCall,
        ingested: &mut Ingested,
        scales: &CostCheck<'_>,
    ) -> Result<Option<(CompiledCall, Outline)>, ProxyFailure> {
        let outline = self.cache_outline(&call);
        let cut = (call, outline);
        if has_layer_content(&cut.0, &ingested.chat) {
            if scales.ignores_cost || !self.policy.can_change_fitting_request() {
                return Ok(Some(cut));
            }
            // What is to be said is said, whatever it costs; what else is changed has to pay beside that.
            let nothing = RequestChanges {
                client_tools: self.request.transcript.tools.clone(),
                history: history_policy(&PolicyConfig::default()),
                marks: None,
            };
            return self
                .choose_between(cut, nothing, ingested, scales)
                .await
                .map(Some);
        }
        if self.changes.history.window == Window::Whole || !scales.costs_more(&cut.1) {
            let pays = scales.should_replace(scales.original, &cut.1, &cut.0);
            return Ok(pays.then_some(cut));
        }
        // A cut that moves is written to the cache anew: it has to pay beside the one that was sent before.
        let mut before = self.changes.clone();
        before.history.window = Window::Whole;
        let chosen = self.choose_between(cut, before, ingested, scales).await?;
        let pays = scales.should_replace(scales.original, &chosen.1, &chosen.0);
        Ok(pays.then_some(chosen))
    }

    /// A call, if it pays beside the one with this change; else that.
    async fn choose_between(
        &mut self,
        call: (CompiledCall, Outline),
        change: RequestChanges,
        ingested: &mut Ingested,
        scales: &CostCheck<'_>,
    ) -> Result<(CompiledCall, Outline), ProxyFailure> {
        let (change, own) = (
            std::mem::replace(&mut self.changes, change),
            self.server_tools.clone(),
        );
        let other = self.compile_with_read_tool(ingested).await?;
        let outline = self.cache_outline(&other);
        if !scales.should_replace(&outline, &call.1, &call.0) {
            return Ok((other, outline));
        }
        (self.changes, self.server_tools) = (change, own);
        Ok(call)
    }

    /// The next request for the same answer, behind what our tools gave.
    ///
    /// # Errors
    /// The compiler refuses, or the store fails.
    pub(crate) async fn next_round_request(
        &mut self,
        ingested: &mut Ingested,
        round: ToolRound,
    ) -> Result<RewrittenRequest, ProxyFailure> {
        let call = self.compile_history(ingested).await?;
        let outline = self.cache_outline(&call);
        let mut next = self.build_rewritten(&ingested.chat, call, outline)?;
        if round == ToolRound::Last {
            let body = String::from_utf8_lossy(&next.body);
            next.body = forbid_tool_calls(self.format, &body).into();
        }
        Ok(next)
    }

    /// The call, with a tool of ours where something can be read with it.
    async fn compile_with_read_tool(
        &mut self,
        ingested: &mut Ingested,
    ) -> Result<CompiledCall, ProxyFailure> {
        let tool = ServerTool::ReadContext;
        let offering = match self.policy.tools.allows(tool.name()) {
            true => OfferPermission::for_tool(&tool, self.format, &self.request),
            false => OfferPermission::Never,
        };
        let due = |call: &CompiledCall| offering.should_offer(&tool, call);
        let without = self.server_tools.clone().without_tool(&tool);
        let with = without.clone().with_tool(tool.clone());
        // Where it is likely to be due it is compiled once.
        let shortens = self.has_long_output() || self.is_over_window && self.policy.clear.is_some();
        let likely = offering == OfferPermission::Free && shortens;
        if likely {
            self.server_tools = with.clone();
            if let Ok(call) = self.compile_history(ingested).await
                && due(&call)
            {
                return Ok(call);
            }
        }
        self.server_tools = without.clone();
        let call = self.compile_history(ingested).await?;
        if likely || !due(&call) {
            return Ok(call);
        }
        self.server_tools = with;
        if let Ok(call) = self.compile_history(ingested).await {
            return Ok(call);
        }
        self.server_tools = without;
        Ok(call)
    }

    /// Whether an output is so long that it is previewed.
    fn has_long_output(&self) -> bool {
        let Some(most) = self
            .policy
            .preview
            .filter(|_| self.changes.history.preview.is_some())
        else {
            return false;
        };
        let is_long = |item: &Item| {
            matches!(item, Item::FunctionCallOutput(_)) && item.text().len() as u64 > most
        };
        self.request.transcript.items.iter().any(is_long)
    }

    async fn compile_history(&self, ingested: &mut Ingested) -> Result<CompiledCall, ProxyFailure> {
        let (chat, target) = (ingested.chat.clone(), self.compile_target());
        let options = CompileOptions {
            // Those of this request: what was stored may be of another that said the same.
            instructions: Some(&self.request.transcript.instructions),
            ..CompileOptions::default()
        };
        let refused = |error: EngineError| rewrite_failure(&error);
        let call = if self.is_over_window && self.policy.compact.is_some() {
            // As long as it fits it stays as it is, so that the provider's cache holds.
            let how = PrepareOptions {
                trigger: Trigger::Overflow,
                ..PrepareOptions::default()
            };
            let prepared = chat.prepare_with(&target, &how, options).await;
            let prepared = prepared.map_err(refused)?;
            // The answer goes behind the compaction, whichever request is sent.
            ingested.head = prepared.call.base();
            prepared.call
        } else {
            chat.compile_with(&target, options).await.map_err(refused)?
        };
        if !call.tool_names().is_empty() {
            let why = "it has tools with names that the provider refuses";
            return Err(ProxyFailure::new("rewrite", why));
        }
        Ok(call)
    }

    /// A call as a provider's cache sees what goes out with it.
    fn cache_outline(&self, call: &CompiledCall) -> Outline {
        let mut outline = call.payload.outline_with_markers();
        outline.scope.clone_from(&self.cache_scope);
        outline
    }

    /// What goes out with a call's history.
    fn build_rewritten(
        &self,
        chat: &Conversation,
        call: CompiledCall,
        outline: Outline,
    ) -> Result<RewrittenRequest, ProxyFailure> {
        let body = replace_history(self.format, &self.request.body, &call.payload.to_json());
        let body = body.map_err(|error| rewrite_failure(&error))?;
        // What was stored before secrets were taken out may hold some.
        let body = match chat.engine().secrets() {
            Some(secrets) => secrets.redact(&body).into_owned(),
            None => body,
        };
        Ok(RewrittenRequest {
            body: body.into(),
            call,
            outline,
            predicted: CacheUsage::default(),
            saved: 0,
            plan: None,
        })
    }

    fn compile_target(&self) -> Target {
        let Self {
            policy,
            request: read,
            ..
        } = self;
        let mut options = read.transcript.options.clone();
        let window = policy.limit_tokens;
        // An output limit made for the model's window would leave nothing of a smaller one.
        options.max_output_tokens = options
            .max_output_tokens
            .filter(|limit| window.is_none_or(|window| *limit <= window / 2));
        let target = Target::new(self.format, self.model.as_str())
            .options(options)
            .tools(self.changes.client_tools.clone())
            .add_tools(self.server_tools.definitions())
            .marker_policy(self.changes.marks)
            .history(self.changes.history.clone());
        // It counts as one of the marks that a request may have.
        let target = match read.body_field("cache_control") {
            Some(mark) => target.param("cache_control", Raw::from(mark)),
            None => target,
        };
        match window {
            Some(window) => target.window(window),
            None => target,
        }
    }
}

/// A request as it came: all of it, as far as any provider would take it.
fn compile_original(
    chat: &Conversation,
    target: &Target,
    transcript: &Transcript,
    narrowing: Option<CalibratedRange>,
) -> Result<Compiled, CompileError> {
    let history = HistoryPolicy {
        clear: Clear::Never,
        ..HistoryPolicy::for_one_call()
    };
    let target = target
        .clone()
        .window(UNLIMITED_WINDOW)
        .history(history)
        .marker_policy(None);
    chat.compile_external(transcript, &target, narrowing)
}

fn history_policy(policy: &PolicyConfig) -> HistoryPolicy {
    HistoryPolicy {
        window: match policy.window {
            Some(WindowConfig {
                turns: Some(turns), ..
            }) => Window::Turns(turns),
            Some(WindowConfig {
                tokens: Some(tokens),
                ..
            }) => Window::Tokens(tokens),
            _ => Window::Whole,
        },
        clear: policy.clear.map_or(Clear::Never, |clear| {
            Clear::By(ClearPolicy {
                keep_recent: clear.keep_recent,
                ..ClearPolicy::default()
            })
        }),
        preview: policy.preview.map(|characters| PreviewPolicy {
            threshold: TextSize::Characters(characters),
            when: Previewing::Always,
            ..PreviewPolicy::default()
        }),
        ..HistoryPolicy::default()
    }
}

fn token_count(outline: &Outline) -> i64 {
    i64::try_from(outline.tokens()).unwrap_or(i64::MAX)
}

fn rewrite_failure(error: &dyn std::error::Error) -> ProxyFailure {
    ProxyFailure::from_error("rewrite", error)
}
