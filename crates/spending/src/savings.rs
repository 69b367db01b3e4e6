//! What a policy would have saved: the calls of a session compiled again, without a model.
//!
//! For each call the history that it was given is known from its log. It is compiled twice for the model's own format: whole,
//! as it was sent, and by the policy. Both go through the same simulated cache at the times of the log, with markers placed by
//! the same rules, and both are priced by the same rates. So a prediction is compared with a prediction, never with a bill; how
//! far the first one is from the bill is shown beside the result.
//!
//! Tools and system prompt are in no log. What the first call of a history was billed more than its messages count is taken to
//! be them: a prefix of that size stands before both, and the policy's window is smaller by it.
//!
//! Not in the figures: answers, which are taken to be the same; the quality of them; calls that a model might make to read what
//! was shortened; summaries by a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_catalogue::{Catalogue, ModelSpec, Money};
use contexture_compile::{
    Clear, CompileInput, CompileRequest, HistoryPolicy, PathItem, Plan, Scratch, Target, compile,
};
use contexture_ir::{Cancel, ContentHash, Item, Message, Part, Role};
use contexture_prompt_cache::{
    CacheRules, CacheSimulator, CacheUsage, CachedPrefix, MarkerPolicy, Outline, OutlineSegment,
    Rates, RequestPart, place_markers,
};
use contexture_sessions::{LogUsage, LoggedCall, ReportedTokens, Session, SessionNode};
use contexture_tokens::{TokenBounds, counter_for};
use contexture_wire::{CacheTtl, Format};

use crate::figures::PolicySavings;
use crate::price::PriceBook;

/// A window that nothing fills.
const BOUNDLESS: u64 = 1 << 40;

/// Calls of one log beyond this many are not compiled again, but skipped: each is given all of the history before it, so work
/// grows with their square.
pub const MAX_REPLAYED_CALLS: usize = 2_000;

/// The policy that calls are compiled again with.
#[derive(Clone, Copy, Debug)]
pub struct ReplayPolicy<'a> {
    /// How much of a history is shown, and how.
    pub history: &'a HistoryPolicy,
    /// A smaller window than the model's, in tokens.
    pub limit_tokens: Option<u64>,
}

/// What came of the calls of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionReplay {
    /// Number of calls that were compiled again.
    pub calls: u64,
    /// Number of calls that could not be.
    pub skipped_calls: u64,
    /// What their input was billed.
    pub billed: Money,
    /// What it would have cost as it was sent, predicted.
    pub predicted: Money,
    /// What it would have cost under the policy, predicted.
    pub with_policy: Money,
    /// Input tokens as sent, predicted.
    pub predicted_tokens: u64,
    /// Input tokens under the policy, predicted.
    pub policy_tokens: u64,
}

impl SessionReplay {
    /// Adds what came of another file of the same session.
    pub fn add_replay(&mut self, more: &Self) {
        self.calls += more.calls;
        self.skipped_calls += more.skipped_calls;
        self.billed += more.billed;
        self.predicted += more.predicted;
        self.with_policy += more.with_policy;
        self.predicted_tokens = self.predicted_tokens.saturating_add(more.predicted_tokens);
        self.policy_tokens = self.policy_tokens.saturating_add(more.policy_tokens);
    }
}

impl PolicySavings {
    /// Begins a sum for a policy, by its name and in words.
    #[must_use]
    pub fn new(policy: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            policy: policy.into(),
            description: description.into(),
            ..Self::default()
        }
    }

    /// Adds a session; one of which no call could be compiled again counts by its skipped calls alone.
    pub fn add_session(&mut self, replay: &SessionReplay) {
        self.skipped_calls += replay.skipped_calls;
        if replay.calls == 0 {
            return;
        }
        self.sessions += 1;
        self.calls += replay.calls;
        self.billed += replay.billed;
        self.predicted += replay.predicted;
        self.with_policy += replay.with_policy;
        self.predicted_tokens = self
            .predicted_tokens
            .saturating_add(replay.predicted_tokens);
        self.policy_tokens = self.policy_tokens.saturating_add(replay.policy_tokens);
        if replay.with_policy > replay.predicted {
            self.dearer_sessions += 1;
            self.dearer += replay.with_policy.saturating_sub(replay.predicted);
        }
    }
}

/// Compiles the calls of a session again. `cancel` ends it early, with what was done until then.
#[must_use]
pub fn replay_session(
    session: &Session,
    log: &LogUsage,
    policy: ReplayPolicy<'_>,
    catalogue: &Catalogue,
    cancel: &Cancel,
) -> SessionReplay {
    let histories = Histories::new(session, log);
    let mut prices = PriceBook::new(catalogue);
    let mut replay = SessionReplay::default();
    let mut chains = Chains::default();
    let beyond = log.calls.len().saturating_sub(MAX_REPLAYED_CALLS);
    replay.skipped_calls += beyond as u64;
    for (number, call) in log.calls.iter().enumerate().take(MAX_REPLAYED_CALLS) {
        if cancel.is_cancelled() {
            break;
        }
        let replayed = prices.model(&call.model).and_then(|model| {
            let path = histories.of_call(session, call)?;
            chains.replay_call((number, call), &path, policy, (model, catalogue))
        });
        let Some(replayed) = replayed else {
            replay.skipped_calls += 1;
            continue;
        };
        replay.calls += 1;
        replay.billed += replayed.billed;
        replay.predicted += replayed.predicted.cost;
        replay.with_policy += replayed.with_policy.cost;
        replay.predicted_tokens += replayed.predicted.tokens;
        replay.policy_tokens += replayed.with_policy.tokens;
    }
    replay
}

/// The items of a session, and where the answers and the contexts begin in it.
struct Histories {
    items: Vec<PathItem>,
    /// The first node of each record.
    first_nodes: BTreeMap<usize, usize>,
    /// For each node, whether the model's view began anew with it.
    begins: Vec<bool>,
}

impl Histories {
    fn new(session: &Session, log: &LogUsage) -> Self {
        let records = session.node_records();
        let mut first_nodes = BTreeMap::new();
        for (node, record) in records.iter().enumerate() {
            first_nodes.entry(*record).or_insert(node);
        }
        let begins = |record: &usize| log.context_starts.binary_search(record).is_ok();
        Self {
            items: session.tree.iter().map(path_item).collect(),
            first_nodes,
            begins: records.iter().map(begins).collect(),
        }
    }

    /// What a call was given: the path to its answer, from where the view last began anew.
    fn of_call(&self, session: &Session, call: &LoggedCall) -> Option<Vec<PathItem>> {
        let answer = session.tree.get(*self.first_nodes.get(&call.record)?)?;
        let path = session.path_to(answer.parent?);
        let begins = |node: &usize| self.begins.get(*node).copied().unwrap_or_default();
        let start = path.iter().rposition(begins).unwrap_or(0);
        let path = path.get(start..).unwrap_or_default();
        let items: Vec<PathItem> = path
            .iter()
            .filter_map(|node| self.items.get(*node))
            .filter(|item| item.audience.model)
            .cloned()
            .collect();
        (!items.is_empty()).then_some(items)
    }
}

/// A node as the compiler takes it. A compaction is what the program said in its place: a message.
fn path_item(node: &SessionNode) -> PathItem {
    let item = match &node.item {
        Item::Compaction(compaction) => {
            let texts = compaction.summary.iter().filter_map(Part::as_text);
            let text = texts.collect::<Vec<_>>().join("\n");
            Item::Message(Message::text(Role::User, text))
        }
        item => item.clone(),
    };
    PathItem {
        audience: node.audience,
        origin: node.origin,
        ..PathItem::new(Arc::new(item))
    }
}

/// What is known behind a call for the next one of its history.
#[derive(Default)]
struct Chain {
    /// Tokens that stand before the messages and are in no log.
    hidden: u64,
    sent: Side,
    policy: Side,
}

/// One of the two ways in which a history is sent.
#[derive(Default)]
struct Side {
    plan: Plan,
    cached: Vec<CachedPrefix>,
}

/// The histories of a session, by the number of their last call, and the caches that they share.
#[derive(Default)]
struct Chains {
    by_call: BTreeMap<usize, Chain>,
    caches: BTreeMap<String, (CacheSimulator, CacheSimulator)>,
    scratch: Scratch,
}

/// The input of one request, and its price.
struct SideCost {
    tokens: u64,
    cost: Money,
}

struct ReplayedCall {
    billed: Money,
    predicted: SideCost,
    with_policy: SideCost,
}

/// What both sides of a call have in common.
struct CallFrame<'a> {
    path: &'a [PathItem],
    model: &'a ModelSpec,
    rules: CacheRules,
    markers: MarkerPolicy,
    at_ms: u64,
}

impl Chains {
    fn replay_call(
        &mut self,
        (number, call): (usize, &LoggedCall),
        path: &[PathItem],
        policy: ReplayPolicy<'_>,
        (model, catalogue): (&ModelSpec, &Catalogue),
    ) -> Option<ReplayedCall> {
        let frame = CallFrame::new(call, path, model);
        let as_sent = whole_request(&frame, catalogue)?;
        // Taken along and not copied. Where two calls go on from the same one, the second begins a chain of its own.
        let before = call
            .previous
            .and_then(|previous| self.by_call.remove(&previous));
        let is_first = before.is_none();
        let mut chain = before.unwrap_or_default();
        let sent = frame.compile_side(&as_sent, &mut chain.sent, &mut self.scratch)?;
        if is_first {
            // Measured once: what is billed later without being counted is an error of the counts, not of the prefix.
            chain.hidden = call.tokens.input().saturating_sub(sent.tokens());
        }
        let window = policy.limit_tokens.unwrap_or(model.context_window);
        let by_policy = frame
            .target()
            .history(policy.history.clone())
            // The hidden prefix takes its share of the window, though the compiler does not see it.
            .window(window.saturating_sub(chain.hidden))
            .build_request(catalogue)
            .ok()?;
        let shortened = frame.compile_side(&by_policy, &mut chain.policy, &mut self.scratch)?;
        let (predicted, with_policy) = self.price_call(&frame, (sent, shortened), &mut chain)?;
        self.by_call.insert(number, chain);
        Some(ReplayedCall {
            billed: billed_input(call, model),
            predicted,
            with_policy,
        })
    }

    /// Sends both requests of a call to the caches of its model.
    fn price_call(
        &mut self,
        frame: &CallFrame<'_>,
        (sent, shortened): (Outline, Outline),
        chain: &mut Chain,
    ) -> Option<(SideCost, SideCost)> {
        let empty = || CacheSimulator::new(frame.rules.clone());
        // One cache for all histories of a session: branches and sub-agents share what they begin with.
        let caches = self
            .caches
            .entry(frame.model.id.clone())
            .or_insert_with(|| (empty(), empty()));
        let hidden = chain.hidden;
        let predicted = frame.price_side((sent, hidden), &mut chain.sent.cached, &mut caches.0)?;
        let with_policy =
            frame.price_side((shortened, hidden), &mut chain.policy.cached, &mut caches.1)?;
        Some((predicted, with_policy))
    }
}

/// What the input of a call was billed.
fn billed_input(call: &LoggedCall, model: &ModelSpec) -> Money {
    let input = ReportedTokens {
        output: 0,
        ..call.tokens
    };
    Money::from_pico_dollars(PriceBook::cost(Some(model), &input).pico_dollars)
}

/// The request that sends all of a history.
fn whole_request(frame: &CallFrame<'_>, catalogue: &Catalogue) -> Option<CompileRequest> {
    let whole = HistoryPolicy {
        clear: Clear::Never,
        ..HistoryPolicy::default()
    };
    // A window that nothing fills: what was sent did fit, whatever our counts say.
    let target = frame.target().history(whole).window(BOUNDLESS).reserve(1);
    target.build_request(catalogue).ok()
}

impl<'a> CallFrame<'a> {
    fn new(call: &LoggedCall, path: &'a [PathItem], model: &'a ModelSpec) -> Self {
        // As the program wrote it: where it asked for the longer time, markers of ours do too.
        let ttl = match call.tokens.cache_write_long {
            0 => CacheTtl::Usual,
            _ => CacheTtl::Long,
        };
        let at_ms = call.asked_ms.or(call.at_ms);
        Self {
            path,
            model,
            rules: CacheRules::for_model(model, Format::of_provider(&model.provider)),
            markers: MarkerPolicy {
                head: ttl,
                history: ttl,
            },
            at_ms: at_ms.and_then(|at| u64::try_from(at).ok()).unwrap_or(0),
        }
    }

    /// The model behind its provider's own format.
    fn target(&self) -> Target {
        Target::new(self.rules.format, self.model.id.clone())
    }

    /// Compiles the history in one of the two ways; `None` if it is refused.
    fn compile_side(
        &self,
        request: &CompileRequest,
        side: &mut Side,
        scratch: &mut Scratch,
    ) -> Option<Outline> {
        let input = CompileInput {
            path: self.path.into(),
            covers: &[],
            dropped_rules: &[],
            passes: &[],
            contributions: &[],
            plan: &side.plan,
            request,
            counter: counter_for(self.model.encoding),
            cancel: None,
        };
        let compiled = compile(&input, scratch).ok()?;
        side.plan = compiled.plan;
        Some(compiled.payload.outline())
    }

    /// Sends a request to the simulated cache, and prices what it reads and writes.
    fn price_side(
        &self,
        (mut outline, hidden): (Outline, u64),
        cached: &mut Vec<CachedPrefix>,
        cache: &mut CacheSimulator,
    ) -> Option<SideCost> {
        if hidden > 0 {
            outline.segments.insert(0, hidden_segment(hidden));
        }
        for segment in &mut outline.segments {
            // Markers are placed here, for both sides alike.
            segment.markers.clear();
        }
        let plan = place_markers(&outline, &self.rules, cached, self.markers);
        let used: CacheUsage = cache.record_call(&outline, &plan.markers, self.at_ms);
        *cached = plan.cached_prefixes;
        let tokens = used.total_tokens();
        let rates = Rates::for_request(&self.model.prices, self.rules.kind, tokens)?;
        Some(SideCost {
            tokens,
            cost: Money::from_pico_dollars(used.input_cost(&rates)),
        })
    }
}

/// What stands before the messages and is in no log: tools and system prompt.
fn hidden_segment(tokens: u64) -> OutlineSegment {
    let hash = ContentHash::of(&tokens.to_le_bytes());
    OutlineSegment {
        tokens: TokenBounds {
            low: tokens,
            high: tokens,
        },
        blocks: 1,
        can_carry: true,
        ..OutlineSegment::new(RequestPart::System, 0, hash)
    }
}
