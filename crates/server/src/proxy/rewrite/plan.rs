//! The rewrite of one request: the conversation compiled at what the client sent, in the place of its history.
//!
//! It is sent only where it is another request, fits, and costs less, is the only one that fits, or has something to say
//! that the client's has not. Not here: what is shown of a history (`contexture-compile`), which policy (`route::policy`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use contexture::compile::{
    BudgetCount, CacheUsage, CalibratedRange, CallBand, Clear, CompileError, Compiled,
    Contribution, CountedRequest, HistoryPolicy, MarkerPolicy, Outline, Report, RetryBudget,
    Target, Window,
};
use contexture::engine::{
    AnsweredRequest, BackgroundSummary, CompileAttempt, Ingested, PrepareOptions, SettingsSource,
};
use contexture::ir::{Item, NodeId, ToolDefinition, Transcript};
use contexture::wire::TooLong;
use contexture::wire::replace_history;
use contexture::{CompileOptions, CompiledCall, Conversation, Engine, EngineError, Format};
use contexture_api::policy::{CostCondition, PolicyConfig, select_tools};

use crate::proxy::capture::ingest::{IngestedRequest, ParsedRequest};
use crate::proxy::failure::ProxyFailure;
use crate::proxy::rewrite::cost_check::CostCheck;
use crate::proxy::rewrite::injected_layers::{has_layer_content, inject_layers};
use crate::proxy::server_tools::{OfferPermission, ServerTool, ServerTools};
use crate::state::cost_accounts::{BookedCall, CostAccount, CostAccounts, PriceTerms};

/// A window larger than every model's, in tokens.
const UNLIMITED_WINDOW: u64 = 1 << 40;

/// A request whose cost is known as far as prices are.
#[derive(Debug)]
pub(crate) struct PricedRequest {
    pub(crate) account: CostAccount,
    pub(crate) terms: PriceTerms,
    /// When it is sent, in milliseconds; of a later round when that is sent.
    pub(crate) at_ms: u64,
    /// What the client sent.
    pub(crate) original: Outline,
    /// Its token counts, for calibration by the provider's usage.
    pub(crate) counting: CountedRequest,
    /// What of it is expected to be read from the cache.
    pub(crate) predicted: CacheUsage,
    /// What to send in its place, if anything.
    pub(crate) rewritten: Option<Box<RewrittenRequest>>,
    /// How it is shortened if the client's own is sent and refused as too long.
    pub(crate) own: Option<Box<OwnRequest>>,
    /// Who is asked for a summary behind its answer; `None` if nobody is, or it is too early for one.
    pub(crate) summary: Option<Box<SummaryOrder>>,
}

/// A summary that may be asked for behind the answer to a request.
#[derive(Debug)]
pub(crate) struct SummaryOrder {
    options: PrepareOptions,
    target: Target,
    /// The client's own request with what was counted of it, if that is sent and large enough.
    own: Option<(String, Report)>,
}

impl SummaryOrder {
    /// Begins a summary in the background behind what was sent, if it is due. `head` is the last node of what was sent.
    ///
    /// # Errors
    /// The model is not known.
    pub(crate) fn begin(
        &self,
        chat: &Conversation,
        head: NodeId,
        sent: Option<&RewrittenRequest>,
    ) -> Result<(), EngineError> {
        let (body, report) = match (sent, &self.own) {
            (Some(sent), _) => {
                let body = String::from_utf8_lossy(&sent.body).into_owned();
                (body, &sent.call.report)
            }
            (None, Some((body, report))) => (body.clone(), report),
            (None, None) => return Ok(()),
        };
        chat.summarise_behind(AnsweredRequest {
            body,
            head,
            target: &self.target,
            report,
            options: &self.options,
        })
    }
}

/// What is known of a request's host beside its format.
#[derive(Debug)]
pub(crate) struct HostTraits {
    /// Whether it refuses what is too long.
    pub(crate) refuses_overflow: bool,
    /// Who writes summaries in the background, if anybody.
    pub(crate) summary: Option<BackgroundSummary>,
}

/// A client's own request that is sent, and how another is made in its place.
#[derive(Debug)]
pub(crate) struct OwnRequest {
    plan: Box<RewritePlan>,
    report: Report,
}

/// A request that the provider refused as too long.
#[derive(Debug)]
pub(crate) struct RefusedRequest {
    /// What the provider says of its length.
    pub(crate) refused: TooLong,
    /// The request that was sent in the place of the client's, if one was.
    pub(crate) sent: Option<Box<RewrittenRequest>>,
}

/// A request that is sent in the place of a client's.
#[derive(Debug)]
pub(crate) struct RewrittenRequest {
    pub(crate) body: Bytes,
    pub(crate) call: CompiledCall,
    pub(crate) outline: Outline,
    /// What of it is expected to be read from the cache.
    pub(crate) predicted: CacheUsage,
    /// Tokens saved against the client's; negative if it is longer.
    pub(crate) saved: i64,
    /// How later requests for its answer are made: rounds behind server tools, and a shorter one if it is refused as too
    /// long.
    pub(crate) plan: Option<Box<RewritePlan>>,
}

/// How requests for one answer are made: the client's request, and what the policy changes in it.
#[derive(Clone, Debug)]
pub(crate) struct RewritePlan {
    policy: PolicyConfig,
    format: Format,
    model: String,
    /// Shared: the work of each round owns a clone of the plan.
    request: Arc<ParsedRequest>,
    changes: RequestChanges,
    /// What the policy says itself: state and guardrails.
    contributions: Vec<Contribution>,
    /// Cache scope of the client's requests. A compile would set its own, but its cache key is not sent.
    cache_scope: String,
    /// Whether the client's request exceeds the window.
    is_over_window: bool,
    /// Whether the host refuses what is too long.
    refuses_overflow: bool,
    /// What a request may take behind one that was refused as too long.
    retry_budget: Option<RetryBudget>,
    server_tools: ServerTools,
    /// How its history is compacted where it does not fit.
    prepare: Option<PrepareOptions>,
}

/// What a plan changes in a request, injected layers apart.
#[derive(Clone, Debug)]
struct RequestChanges {
    /// The client's tools that are offered.
    client_tools: Vec<ToolDefinition>,
    /// How much of the history is shown.
    history: HistoryPolicy,
    /// Cache markers to set; `None` leaves the client's.
    marks: Option<MarkerPolicy>,
}

/// The position of a request among those for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolRound {
    /// The first request: the client's own, or its rewrite.
    First,
    /// A later request of the server, with the outputs of server tools.
    Later,
    /// The last such request, in which the model may call no tool.
    Last,
}

impl RewrittenRequest {
    /// Whether it offers tools that this server runs, whose calls the client must not see.
    pub(crate) fn offers_server_tools(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| !plan.server_tools.is_empty())
    }

    /// Returns what the request is made of.
    pub(crate) fn band(&self) -> CallBand {
        CallBand::from_report(&self.call.report)
    }

    /// Returns the same with what its prefix read from the cache, and what a break of it cost.
    pub(crate) fn booked_band(&self, booked: &BookedCall) -> CallBand {
        let pico = booked
            .lost_cost
            .map(|cost| u64::try_from(cost).unwrap_or(u64::MAX));
        let band = self.band().with_cache_usage(&booked.sent);
        band.with_break_cost(booked.lost_tokens, pico)
    }
}

impl PricedRequest {
    /// Makes a shorter request in the place of one that was refused as too long, by the upper bound of its count. What the refusal says
    /// of the model's counts is stored first. `None` where it would be the same request again.
    ///
    /// # Errors
    /// The compiler refuses, or the store fails.
    pub(crate) async fn shorten(
        &mut self,
        accounts: &CostAccounts,
        ingested: &mut Ingested,
        request: RefusedRequest,
    ) -> Result<Option<Box<RewrittenRequest>>, ProxyFailure> {
        let sent = match request.sent {
            Some(sent) => {
                let RewrittenRequest { plan, call, .. } = *sent;
                plan.map(|plan| (plan, call.report))
            }
            None => self.own.take().map(|own| (own.plan, own.report)),
        };
        let Some((mut plan, report)) = sent else {
            return Ok(None);
        };
        let chat = ingested.chat.clone();
        let target = plan.compile_target();
        let budget = chat.budget_after_refusal(&target, &report, request.refused);
        let Some(budget) = budget.await else {
            return Ok(None);
        };
        plan.retry_budget = Some(budget);
        plan.is_over_window = true;
        let call = plan.compile_with_read_tool(ingested).await?;
        let outline = plan.cache_outline(&call);
        let shorter = RewrittenRequest {
            saved: token_count(&self.original).saturating_sub(token_count(&outline)),
            predicted: accounts.predict_usage(&self.account, &self.terms, &outline, self.at_ms),
            ..plan.build_rewritten(&chat, call, outline)?
        };
        Ok(Some(Box::new(RewrittenRequest {
            plan: Some(plan),
            ..shorter
        })))
    }

    /// Books what was sent. Only the first round is booked as the client's too: without us there would be no others.
    pub(crate) fn record_call(
        &self,
        accounts: &CostAccounts,
        sent: Option<&RewrittenRequest>,
        round: ToolRound,
    ) -> BookedCall {
        // Without a rewrite the client's own request went out, so it is booked on both sides.
        let outline = sent.map_or(&self.original, |sent| &sent.outline);
        let passed = (round == ToolRound::First).then_some(&self.original);
        accounts.record_call(&self.account, &self.terms, outline, passed, self.at_ms)
    }
}

/// Returns the engine's time in milliseconds, as cost accounts count it.
pub(crate) fn now_ms(engine: &Engine) -> u64 {
    u64::try_from(engine.now_ms()).unwrap_or(0)
}

/// Returns how long a request waits to be rewritten.
pub(crate) const fn rewrite_timeout(policy: &PolicyConfig) -> Duration {
    Duration::from_millis(policy.ingest_timeout_ms)
}

/// Prices a stored request, and builds the one to send in its place if the policy wants another. `None`: the provider holds
/// the history, so nobody here can say what a request is.
///
/// # Errors
/// The model is not known, or the compiler refuses.
pub(crate) async fn rewrite_request(
    accounts: &CostAccounts,
    policy: PolicyConfig,
    format: Format,
    stored: &mut IngestedRequest,
    parsed: ParsedRequest,
    host: HostTraits,
) -> Result<Option<PricedRequest>, ProxyFailure> {
    let refuses_overflow = host.refuses_overflow;
    if parsed.has_provider_history(format) {
        return Ok(None);
    }
    // Before the plan is made: it reads from the conversation which tools its layers offer.
    inject_layers(&policy, format, stored, &parsed)
        .await
        .map_err(|error| rewrite_failure(&error))?;
    let ingested = &mut stored.ingested;
    let chat = ingested.chat.clone();
    let mut plan = RewritePlan {
        refuses_overflow,
        prepare: policy.prepare_options(host.summary),
        ..RewritePlan::new(policy, format, parsed, &chat)?
    };
    let target = plan.compile_target();
    let request = target
        .build_request(chat.engine().catalogue())
        .map_err(|error| rewrite_failure(&error))?;
    let range = chat.calibrated_range(&request).await;
    let mut whole = plan.compile_client_request(&chat, &target, range)?;
    // The reserve is kept free for the answer, so the request has to fit into what is left.
    let space = request.limit();
    plan.is_over_window = whole.report.totals.tokens > space;
    // After the client's own request is compiled: that one must keep all tools it came with.
    if let Some(most) = plan.policy.tools.select {
        plan.changes.client_tools = {
            let request = &plan.request.transcript;
            select_tools(most, request, request.items.iter())
        };
    }
    let call = plan.compile_with_read_tool(ingested).await?;
    if call.calibrated_range() != range {
        // Token counts are compared below, so both sides are counted with the same calibration.
        whole = plan.compile_client_request(&chat, &target, call.calibrated_range())?;
    }
    let original = whole.payload.outline_with_markers();
    // Before candidates are compared: a different scope would look like an empty cache.
    plan.cache_scope.clone_from(&original.scope);
    let terms = plan.price_terms(&chat)?;
    let account = (
        chat.owner().clone(),
        chat.id().clone(),
        request.model.clone(),
    );
    let cost_check = CostCheck {
        accounts,
        account: &account,
        terms: &terms,
        original: &original,
        at_ms: now_ms(chat.engine()),
        ignores_cost: plan.is_over_window || plan.policy.cost_condition == CostCondition::Fits,
        sets_marks: plan.policy.cache_marks,
        // A call was sent before, perhaps under a policy with another window.
        is_bound: request.bound_thinking
            && !(call.report.cache.first && call.report.epoch.number == 1),
    };
    let rewritten = match plan.choose_call(call, ingested, &cost_check).await? {
        None => None,
        Some((call, outline)) => Some(RewrittenRequest {
            saved: token_count(&original).saturating_sub(token_count(&outline)),
            // Predicted before anything is booked: booking would put the request itself into the
            // cache.
            predicted: cost_check.predict_usage(&outline),
            ..plan.build_rewritten(&chat, call, outline)?
        }),
    };
    let summary = plan.order_summary(&chat, &whole.report, rewritten.is_some());
    let (predicted, at_ms) = (cost_check.predict_usage(&original), cost_check.at_ms);
    // The plan is needed again for the rounds behind server tools, and where the provider may refuse what is sent.
    let may_be_refused = refuses_overflow && request.count == BudgetCount::Likely;
    let counting = CountedRequest::from(&whole.report);
    let is_needed = may_be_refused || !plan.server_tools.is_empty();
    let plan = is_needed.then(|| Box::new(plan));
    let (rewritten, own) = attach_plan(rewritten, plan, may_be_refused.then_some(whole.report));
    Ok(Some(PricedRequest {
        predicted,
        rewritten,
        own,
        account,
        terms,
        at_ms,
        original,
        counting,
        summary,
    }))
}

/// Keeps a plan with the request that is sent: with the rewritten one, or, where it may be refused, with the client's own and its
/// report.
fn attach_plan(
    rewritten: Option<RewrittenRequest>,
    plan: Option<Box<RewritePlan>>,
    own: Option<Report>,
) -> (Option<Box<RewrittenRequest>>, Option<Box<OwnRequest>>) {
    match (rewritten, plan, own) {
        (Some(rewritten), plan, _) => {
            (Some(Box::new(RewrittenRequest { plan, ..rewritten })), None)
        }
        (None, Some(plan), Some(report)) => (None, Some(Box::new(OwnRequest { plan, report }))),
        (None, ..) => (None, None),
    }
}

impl RewritePlan {
    /// Creates the plan that a policy has for a request, before anything is compiled.
    fn new(
        policy: PolicyConfig,
        format: Format,
        parsed: ParsedRequest,
        chat: &Conversation,
    ) -> Result<Self, ProxyFailure> {
        let model = parsed.transcript.model.clone();
        let model =
            model.ok_or_else(|| ProxyFailure::new("rewrite", "the request names no model"))?;
        let mut target = Target::new(format, model.as_str());
        if let Some(window) = policy.limit_tokens {
            target = target.window(window);
        }
        // A model that is not known is refused here, unless the policy says its window.
        let spec = target.model_spec(chat.engine().catalogue());
        let spec = spec.map_err(|error| rewrite_failure(&error))?;
        // The client does not know the beginning of an answer that it did not give: the model is told instead.
        let mut capabilities = spec.capabilities;
        capabilities.prefill = false;
        let contributions = policy.contributions(&capabilities);
        Ok(Self {
            contributions: contributions.map_err(|error| rewrite_failure(&error))?,
            changes: RequestChanges {
                client_tools: parsed.transcript.tools.clone(),
                history: policy.history_policy(),
                marks: policy.cache_marks.then(MarkerPolicy::default),
            },
            policy,
            format,
            model,
            request: Arc::new(parsed),
            cache_scope: String::new(),
            is_over_window: false,
            refuses_overflow: false,
            retry_budget: None,
            server_tools: ServerTools::from_layers(chat),
            prepare: None,
        })
    }

    /// Orders a summary behind the answer, where the policy wants one; of the client's own request only if that is sent and it is
    /// time, as its body is kept until then.
    fn order_summary(
        &self,
        chat: &Conversation,
        whole: &Report,
        is_rewritten: bool,
    ) -> Option<Box<SummaryOrder>> {
        let options = self.prepare.as_ref()?;
        let target = self.compile_target();
        let is_due =
            !is_rewritten && options.is_summary_due(chat.engine().catalogue(), &target, whole);
        let own = is_due.then(|| (self.request.body.clone(), whole.clone()));
        let wants_any = options.wants_summaries() && (is_rewritten || own.is_some());
        wants_any.then(|| {
            Box::new(SummaryOrder {
                options: options.clone(),
                target,
                own,
            })
        })
    }

    /// Returns the cache rules and prices of the model.
    fn price_terms(&self, chat: &Conversation) -> Result<PriceTerms, ProxyFailure> {
        let target = self.compile_target();
        let spec = target.model_spec(chat.engine().catalogue());
        let spec = spec.map_err(|error| rewrite_failure(&error))?;
        Ok(PriceTerms::for_model(&spec, self.format))
    }

    /// Compiles the client's own request. It is written by the code that writes its replacement, so that the two outlines
    /// differ only where the requests do.
    fn compile_client_request(
        &self,
        chat: &Conversation,
        target: &Target,
        range: Option<CalibratedRange>,
    ) -> Result<Compiled, ProxyFailure> {
        compile_original(chat, target, &self.request.transcript, range)
            .map_err(|error| rewrite_failure(&error))
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// The tools of ours that it offers.
    pub(crate) const fn server_tools(&self) -> &ServerTools {
        &self.server_tools
    }

    /// Chooses what to send, this call or another, with its outline; `None`: what the client sent.
    async fn choose_call(
        &mut self,
        call: CompiledCall,
        ingested: &mut Ingested,
        cost_check: &CostCheck<'_>,
    ) -> Result<Option<(CompiledCall, Outline)>, ProxyFailure> {
        let outline = self.cache_outline(&call);
        let proposed = (call, outline);
        if !self.contributions.is_empty() || has_layer_content(&proposed.0, &ingested.chat) {
            // Either cost does not matter, or the layers are the only change and there is nothing
            // to weigh.
            if cost_check.ignores_cost || !self.policy.can_change_fitting_request() {
                return Ok(Some(proposed));
            }
            // Notes and skills are sent whatever they cost; every other change must be cheaper than sending them alone.
            let unchanged = RequestChanges {
                client_tools: self.request.transcript.tools.clone(),
                history: PolicyConfig::default().history_policy(),
                marks: None,
            };
            return self
                .choose_between(proposed, unchanged, ingested, cost_check)
                .await
                .map(Some);
        }
        // With the whole history, or a call that is not dearer now, one comparison with the
        // client's request is enough.
        if self.changes.history.window == Window::Whole || !cost_check.costs_more(&proposed.1) {
            let pays = cost_check.should_replace_original(&proposed.1, &proposed.0);
            return Ok(pays.then_some(proposed));
        }
        // A window that moves invalidates the cache behind its start, so it must be cheaper than the whole history too.
        let mut before = self.changes.clone();
        before.history.window = Window::Whole;
        let chosen = self
            .choose_between(proposed, before, ingested, cost_check)
            .await?;
        let pays = cost_check.should_replace_original(&chosen.1, &chosen.0);
        Ok(pays.then_some(chosen))
    }

    /// Compiles the call with other changes, and returns the cheaper of the two.
    async fn choose_between(
        &mut self,
        call: (CompiledCall, Outline),
        change: RequestChanges,
        ingested: &mut Ingested,
        cost_check: &CostCheck<'_>,
    ) -> Result<(CompiledCall, Outline), ProxyFailure> {
        // The plan must stay that of the call that is sent: its later rounds are compiled from it.
        let (proposed_changes, server_tools) = (
            std::mem::replace(&mut self.changes, change),
            self.server_tools.clone(),
        );
        let other = self.compile_with_read_tool(ingested).await?;
        let outline = self.cache_outline(&other);
        if !cost_check.should_replace(&outline, &call.1, &call.0) {
            return Ok((other, outline));
        }
        (self.changes, self.server_tools) = (proposed_changes, server_tools);
        Ok(call)
    }

    /// Compiles the next request for the same answer, behind the outputs of server tools.
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
        // Written into the finished text: the tool choice is the client's, and replacing the
        // history leaves it alone.
        if round == ToolRound::Last {
            let body = String::from_utf8_lossy(&next.body).into_owned();
            let edits = self.format.spec().proxy();
            next.body = edits
                .map_or_else(|| body.clone(), |edits| edits.forbid_tool_calls(&body))
                .into();
        }
        Ok(next)
    }

    /// Compiles the call, with the tool that reads omitted content where the request omits any.
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
        // Compiling is what a rewrite costs in time. Where the tool will probably be needed, one compile with it is tried
        // first; else the one without it decides.
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

    /// Whether an output is long enough to be previewed.
    fn has_long_output(&self) -> bool {
        let Some(most) = self
            .policy
            .preview
            .as_ref()
            .filter(|_| self.changes.history.preview.is_some())
            .map(|preview| preview.characters)
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
            contributions: &self.contributions,
            // This request's own: the stored ones may be of a retry with other instructions.
            instructions: Some(&self.request.transcript.instructions),
            settings: SettingsSource::Target,
            attempt: match self.retry_budget {
                Some(_) => CompileAttempt::AfterRefusal,
                None => CompileAttempt::First,
            },
            ..CompileOptions::default()
        };
        // A refusal is no error for the client: its own request is sent, or its answer ends with the
        // round before.
        let refused = |error: EngineError| rewrite_failure(&error);
        // Compacted only on overflow: as long as it fits the prefix stays, and with it the provider's cache.
        let compaction = self.prepare.as_ref();
        let call = if let Some(how) = compaction.filter(|_| self.is_over_window) {
            let prepared = chat.prepare_with(&target, how, options).await;
            let prepared = prepared.map_err(refused)?;
            // The compaction is stored by now, so the answer goes behind it, whichever request is sent.
            ingested.head = prepared.call.base();
            // A summary goes on from the client's body with this history, and not from what was compiled.
            prepared.call.without_summary()
        } else {
            chat.compile_with(&target, options).await.map_err(refused)?
        };
        // Renamed tools would come back in the answer under names that the client does not know.
        if !call.tool_names().is_empty() {
            let why = "it has tools with names that the provider refuses";
            return Err(ProxyFailure::new("rewrite", why));
        }
        Ok(call)
    }

    /// Returns the outline of a call as the provider's cache sees it.
    fn cache_outline(&self, call: &CompiledCall) -> Outline {
        let mut outline = call.payload.outline_with_markers();
        outline.scope.clone_from(&self.cache_scope);
        outline
    }

    /// Puts a compiled history into the client's request.
    fn build_rewritten(
        &self,
        chat: &Conversation,
        call: CompiledCall,
        outline: Outline,
    ) -> Result<RewrittenRequest, ProxyFailure> {
        // Only the history is replaced: parameters that this version does not know must reach the
        // provider.
        let body = replace_history(self.format, &self.request.body, &call.payload.to_json());
        let body = body.map_err(|error| rewrite_failure(&error))?;
        // History that was stored before redaction was configured may still hold secrets.
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
        let mut target = Target::new(self.format, self.model.as_str());
        if let Some(window) = policy.limit_tokens {
            target = target.window(window);
        }
        // A host of which nothing is known may cut what is too long without a word.
        if self.refuses_overflow {
            target = target.likely_where_refused();
        }
        if let Some(budget) = self.retry_budget {
            target = target.retry_budget(budget);
        }
        target
            .tools(self.changes.client_tools.clone())
            .request_settings(&read.transcript)
            .add_tools(self.server_tools.definitions())
            .marker_policy(self.changes.marks)
            .history(self.changes.history.clone())
    }
}

/// Compiles a client's request with nothing left out, even if it exceeds the window.
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
        // A request over the window must be counted too, as that is how the overflow is found.
        .window(UNLIMITED_WINDOW)
        // And one with too many tools, of which some may be selected.
        .tool_limit(usize::MAX)
        .history(history)
        .marker_policy(None);
    chat.compile_external(transcript, &target, narrowing)
}

fn token_count(outline: &Outline) -> i64 {
    i64::try_from(outline.tokens()).unwrap_or(i64::MAX)
}

fn rewrite_failure(error: &dyn std::error::Error) -> ProxyFailure {
    ProxyFailure::from_error("rewrite", error)
}
