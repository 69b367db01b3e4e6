//! Compiling a conversation, or a history from outside, for one model call.
//!
//! Not here: what the compiler decides (`contexture-compile`), compacting before a call (`compaction`).

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use contexture_compile::{
    Advice, Band, CalibratedRange, CompileError, CompileRequest, Compiled, Compiler, Content,
    Contribution, PathItem, Payload, Plan, Refusal, Report, Rewriting, Target,
};
use contexture_ir::{
    BranchName, CallId, ContentHash, NodeId, ToolChoice, ToolDefinition, Transcript,
};
use contexture_layers::{HookOutcome, LayerEvent};
use contexture_store::{NodeState, PathEnd};
use contexture_telemetry::{self as telemetry, Operation};
use contexture_wire::{Format, ToolNameMap};
use tracing::Instrument;

use super::calibration::compile_calibrated;
use super::contributions::own_contributions;
use super::inputs::{CallInputs, TreeInputs};
use super::layer_contributions::{RecallReader, recall_layers};
use super::options::{CompileOptions, SettingsSource, ToolFilter};
use crate::error::EngineError;
use crate::handle::{
    Conversation, EngineEventKind, TargetChoice, compile_span, load_state, read_full_path,
    resolve_target,
};
use crate::hooks::{SessionPosition, load_session};
use crate::state::stored_settings;

/// Work that begins once the answer to a call is recorded. It must not keep whoever records the answer waiting.
pub(crate) trait AfterAnswer: fmt::Debug + Send + Sync {
    /// Begins the work.
    fn begin(&self, chat: &Conversation, call: &CompiledCall);
}

/// A compiled call: what to send, why it looks so, and what is needed to store the answer.
#[derive(Clone, Debug)]
pub struct CompiledCall {
    /// The request to send.
    pub payload: Payload,
    /// What the payload contains and why.
    pub report: Report,
    /// Advice for the next call.
    pub advice: Advice,
    /// Outcome of each layer's hooks.
    pub outcomes: Vec<HookOutcome>,
    /// Events that layers emitted, for example which notes are shown.
    pub layer_events: Vec<LayerEvent>,
    pub(crate) plan: Plan,
    pub(crate) plan_key: String,
    pub(crate) base: Option<NodeId>,
    pub(crate) branch: BranchName,
    pub(crate) format: Format,
    pub(crate) renames: ToolNameMap,
    pub(crate) inputs: Arc<CallInputs>,
    /// Id of the exchange with the provider, once its answer is stored: storing it again is no other exchange.
    pub(crate) exchange: Arc<OnceLock<CallId>>,
    /// What begins once its answer is recorded.
    pub(crate) after_answer: Option<Arc<dyn AfterAnswer>>,
}

impl CompiledCall {
    pub(crate) fn new(
        compiled: Compiled,
        inputs: CallInputs,
        plan_key: String,
        branch: BranchName,
        base: Option<NodeId>,
    ) -> Self {
        Self {
            payload: compiled.payload,
            report: compiled.report,
            advice: compiled.advice,
            outcomes: Vec::new(),
            layer_events: Vec::new(),
            plan: compiled.plan,
            plan_key,
            base,
            branch,
            format: inputs.request.dialect.format,
            renames: compiled.tool_names,
            inputs: Arc::new(inputs),
            exchange: Arc::default(),
            after_answer: None,
        }
    }

    /// The format of the request, and of the answer.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The tools that the provider knows by other names, as it refuses those that were given. An answer calls them by
    /// the names that were sent.
    #[must_use]
    pub const fn tool_names(&self) -> &ToolNameMap {
        &self.renames
    }

    /// How its counts were narrowed by what was learned of the model; `None`: they were not.
    #[must_use]
    pub fn calibrated_range(&self) -> Option<CalibratedRange> {
        self.inputs.request.calibrated_range
    }

    /// Returns the same without the summary that would be asked for behind it: for who sends another body than its payload, and
    /// begins the summary by [`Conversation::summarise_behind`].
    #[must_use]
    pub fn without_summary(mut self) -> Self {
        self.after_answer = None;
        self
    }

    /// Begins what is to be done once the answer is recorded.
    pub(crate) fn begin_work_after_answer(&self, chat: &Conversation) {
        if let Some(work) = &self.after_answer {
            work.begin(chat, self);
        }
    }

    /// The head the call was compiled against.
    #[must_use]
    pub const fn base(&self) -> Option<NodeId> {
        self.base
    }
}

/// Compiles the history of the branch for a target, with options for this call.
pub(crate) async fn compile_call(
    chat: &Conversation,
    target: TargetChoice<'_>,
    options: CompileOptions<'_>,
) -> Result<CompiledCall, EngineError> {
    let target = resolve_target(chat.engine(), target)?;
    // Resolved once: capabilities and encoding must be those the request is built for.
    let model = target.model_spec(chat.engine().catalogue())?;
    let branch = chat.branch();
    let end = options.at.map(PathEnd::Node);
    let end = end.unwrap_or_else(|| PathEnd::Branch(branch.clone()));
    let path = read_full_path(chat, end).await?;
    // Everything else is read at the node the path ended at, so that all of it is of one instant.
    let at = path
        .head
        .map_or(PathEnd::Branch(branch.clone()), PathEnd::Node);
    let state = load_state(chat, at, "").await?;
    let (target, mut client_tools) = inherit_settings(target, &state, &path.items, &options)?;
    let mut request = target.build_request(chat.engine().catalogue())?;
    // A target with tools is of a program that runs its own.
    if !request.tools.is_empty() {
        client_tools.clear();
    }
    request = request.with_cache_key(cache_key(chat));
    let mut contributions = own_contributions(chat, &state, &options, &model.capabilities)?;
    // A plan belongs to one format and model: their payloads share no prefix that a cache could keep.
    let plan_key = plan_key(target.name(), target.model());
    let tree_inputs = TreeInputs::from_path(&path, &state, &plan_key)?;
    if let Some(tools) = options.tools {
        request = tools.add_to_request(request, tree_inputs.plan.tools.as_ref(), &model);
    }
    // A run passes the session it works with, as its hooks may have changed states that are not stored yet.
    let own;
    let session = match options.layers {
        Some(session) => session,
        None => {
            own = load_session(chat, SessionPosition::from_path(&path), &state, None).await?;
            &own
        }
    };
    // Layers are asked last, as they may add tools to the request and look at the capabilities.
    let reader = RecallReader {
        capabilities: &model.capabilities,
        window: request.window,
        policy: request.history,
    };
    let recalled = recall_layers(chat, session, &tree_inputs.items, reader).await?;
    contributions.extend(recalled.contributions);
    // Behind the tools of the request, whose order the cached prefix begins with.
    request.tools.extend(recalled.tools);
    request.history = recalled.policy;
    insert_client_tools(&mut request.tools, client_tools);
    let mut inputs = CallInputs {
        request,
        contributions,
        encoding: model.encoding,
        passes: recalled.passes,
    };
    let compiled = run_compiler(chat, &mut inputs, &tree_inputs, &options).await?;
    Ok(CompiledCall {
        outcomes: recalled.outcomes,
        layer_events: session.drain_events(),
        ..CompiledCall::new(compiled, inputs, plan_key, branch, path.head)
    })
}

/// Returns the state entry of the plan of calls to a model by the name of their target, which is a format or an adapter's.
fn plan_key(target: &str, model: &str) -> String {
    format!("@plan/{target}/{model}")
}

/// Returns the format in the key of a plan; `None` where it has the name of an adapter.
pub(super) fn format_of_plan_key(key: &str) -> Option<Format> {
    let (target, _) = key.strip_prefix("@plan/")?.split_once('/')?;
    target.parse().ok()
}

/// Adds what the stored request says and neither the target nor the call does. The request's tools are returned.
fn inherit_settings<'t>(
    target: Cow<'t, Target>,
    state: &NodeState,
    path: &[PathItem],
    options: &CompileOptions<'_>,
) -> Result<(Cow<'t, Target>, Vec<ToolDefinition>), EngineError> {
    let stored = match options.settings {
        SettingsSource::StoredRequest => stored_settings(state)?,
        SettingsSource::Target => None,
    };
    let Some(mut settings) = stored else {
        return Ok((target, Vec::new()));
    };
    if let Some(ToolFilter(filter)) = options.stored_tools {
        filter(&mut settings, path);
    }
    let mut tools = std::mem::take(&mut settings.tools);
    // A program that brings a registry runs those tools, and could not run a client's.
    if options.tools.is_some() {
        tools.clear();
        settings.options.tool_choice = None;
        settings.options.parallel_tool_calls = None;
    }
    if options.stored_tools.is_some() {
        // Providers refuse a choice of what is not offered.
        let is_left = |name: &str| tools.iter().any(|tool| tool.name() == name);
        if let Some(ToolChoice::Function { name }) = &settings.options.tool_choice
            && !is_left(name)
        {
            settings.options.tool_choice = None;
        }
    }
    let target = target.into_owned().request_settings(&settings);
    Ok((Cow::Owned(target), tools))
}

/// Puts a client's tools before those of layers. Where both have one of a name it is the layer's that will be run.
fn insert_client_tools(tools: &mut Vec<ToolDefinition>, client: Vec<ToolDefinition>) {
    let own = std::mem::take(tools);
    let is_free = |tool: &ToolDefinition| !own.iter().any(|one| one.name() == tool.name());
    tools.extend(client.into_iter().filter(is_free));
    tools.extend(own);
}

/// Compiles inputs that were read, in a span of its own, and reports the result to watchers and metrics.
async fn run_compiler(
    chat: &Conversation,
    inputs: &mut CallInputs,
    tree_inputs: &TreeInputs<'_>,
    options: &CompileOptions<'_>,
) -> Result<Compiled, EngineError> {
    chat.publish(|| EngineEventKind::CompileStart {
        model: inputs.request.model.clone(),
    });
    let (format, model) = (inputs.request.dialect.format, inputs.request.model.clone());
    // The span begins after everything was read, so that it measures compiling and not the store.
    let span = compile_span(chat, &inputs.request);
    let operation = Operation::for_compile(format, &model, span.clone());
    let compiling = compile_calibrated(chat, inputs, tree_inputs, options.cancel, options.attempt);
    let compiled = compiling.instrument(span.clone()).await;
    operation.end(compiled.as_ref().err().map(Refusal::kind));
    let compiled = compiled?;
    span.record("ctx.compile.tokens", compiled.report.totals.tokens);
    let segments = compiled.report.segments.iter();
    let omitted = segments.map(|segment| segment.omitted_tokens).sum();
    // Only compiles that gave a payload are measured: a refusal has no size.
    telemetry::record_compile(format, &model, compiled.report.totals.tokens, omitted);
    chat.publish(|| compile_done_event(&inputs.request, &compiled.report));
    Ok(compiled)
}

/// By what a provider shall know calls of one conversation, whose prefixes are alike. A hash, as names may
/// say more than a provider need know.
fn cache_key(chat: &Conversation) -> ContentHash {
    let name = format!("prompt cache\n{}\n{}", chat.owner(), chat.id());
    ContentHash::of(name.as_bytes())
}

fn compile_done_event(request: &CompileRequest, report: &Report) -> EngineEventKind {
    let epoch = &report.epoch;
    let rewritten = report.rewritten.iter();
    EngineEventKind::CompileDone {
        model: request.model.clone(),
        tokens: report.totals.tokens,
        epoch: epoch.number,
        epoch_reason: epoch.opened.then_some(epoch.reason),
        cache_read: report.cache.predicted.read,
        previewed: rewritten
            .filter(|one| one.rewriting == Rewriting::Previewed)
            .count(),
    }
}

/// Compiles a history from outside: its instructions before its items, nothing of what is stored. Work that earlier
/// compiles of this handle did is reused.
pub(crate) fn compile_external(
    chat: &Conversation,
    transcript: &Transcript,
    target: &Target,
    narrowing: Option<CalibratedRange>,
) -> Result<Compiled, CompileError> {
    let mut compiler = Compiler::new(chat.engine().catalogue()).with_calibrated_range(narrowing);
    if !transcript.instructions.is_empty() {
        let content = Content::Instructions(transcript.instructions.clone());
        compiler =
            compiler.with_contribution(Contribution::new("instructions", Band::System, content));
    }
    chat.with_scratch(|scratch| compiler.compile_with(&transcript.items, target, scratch))
}

#[cfg(test)]
mod tests {
    use crate::handle::Engine;
    use contexture_compile::{CountedRequest, TokenBounds};
    use contexture_ir::{Message, Role, Usage};

    use super::*;

    #[tokio::test]
    async fn a_warm_handle_writes_the_same() {
        let chat = Engine::in_memory().conversation("c").open().await.unwrap();
        let mut given = Transcript {
            instructions: vec![Message::text(Role::System, "Be brief.")],
            ..Transcript::default()
        };
        let target = Target::openai_chat("gpt-4o");
        for n in 0..4 {
            given
                .items
                .push(Message::text(Role::User, format!("Question {n}")).into());
            let warm = chat
                .compile_external(&given, &target, None)
                .unwrap()
                .payload
                .to_json();
            let instructions = Content::Instructions(given.instructions.clone());
            let instructions = Contribution::new("instructions", Band::System, instructions);
            let cold = Compiler::new(chat.engine().catalogue()).with_contribution(instructions);
            let cold = cold.compile(&given.items, &target).unwrap();
            assert_eq!(warm, cold.payload.to_json());
        }
    }

    #[tokio::test]
    async fn what_is_given_counts_as_the_call_beside_it() {
        let chat = Engine::in_memory().conversation("c").open().await.unwrap();
        let target = Target::anthropic("claude-sonnet-4-5");
        let mut given = Transcript::default();
        for n in 0..8 {
            let question =
                Message::text(Role::User, format!("Question {n}: {}", "why? ".repeat(50)));
            given.items.push(question.clone().into());
            let mut draft = chat.draft();
            draft.push_item(question);
            draft.commit().await.unwrap();
            let plain = chat.compile_external(&given, &target, None).unwrap();
            let counting = CountedRequest::from(&plain.report);
            let TokenBounds { low, high } = counting.counted;
            let usage = Usage {
                input_tokens: Some(low + (high - low) / 5),
                ..Usage::default()
            };
            chat.learn_from_usage(&counting, Some(&usage)).await;
        }
        let request = target.build_request(chat.engine().catalogue()).unwrap();
        let narrowing = chat.calibrated_range(&request).await;
        assert!(narrowing.is_some());
        let call = chat.compile(&target).await.unwrap();
        assert_eq!(call.calibrated_range(), narrowing);
        let tokens = |narrowing| {
            let compiled = chat.compile_external(&given, &target, narrowing).unwrap();
            (compiled.report.totals.low, compiled.report.totals.tokens)
        };
        let totals = &call.report.totals;
        assert_eq!(tokens(narrowing), (totals.low, totals.tokens));
        assert!(tokens(None).1 > totals.tokens);
    }
}
