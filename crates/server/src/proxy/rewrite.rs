//! What a policy makes of a request: the conversation compiled at what the client sent, in the place of its history.
//!
//! It is sent only where it is another request, fits, and costs less, is the only one that fits, or has something to say
//! that the client's has not. Not here: what is shown of a history (`contexture-compile`), which policy (`choice`).

use std::time::Duration;

use bytes::Bytes;
use contexture::compile::{
    CacheUse, Clear, ClearPolicy, CompileError, Compiled, Counting, HistoryPolicy, MarkPolicy,
    Narrowing, Outline, PreviewPolicy, Previewing, Size, Target, Window,
};
use contexture::engine::Trigger;
use contexture::ir::{Item, Raw, ToolDefinition, Transcript};
use contexture::{
    CompileOptions, CompiledCall, Conversation, Engine, EngineError, Format, Ingested,
    PrepareOptions,
};

use crate::config::{Pays, PolicyConfig, WindowConfig};
use crate::proxy::accounts::{Account, Accounts, Booked, Terms};
use crate::proxy::injected::{inject, is_in};
use crate::proxy::matching::{Miss, Read, Stored};
use crate::proxy::own::{Offering, OwnTool, OwnTools, without_choice};
use crate::proxy::scales::Scales;
use crate::proxy::select::selected;
use crate::proxy::splice::splice;

/// Larger than every window.
const ENDLESS: u64 = 1 << 40;

/// A request that was looked at.
#[derive(Debug)]
pub(crate) struct Weighed {
    pub(crate) account: Account,
    pub(crate) terms: Terms,
    /// When it was looked at, which is when it is sent; for a round of ours when that was.
    pub(crate) at_ms: u64,
    /// What the client sent.
    pub(crate) original: Outline,
    /// What was counted of it.
    pub(crate) counting: Counting,
    /// What of it is expected to be read from the cache.
    pub(crate) predicted: CacheUse,
    /// What is to be sent in its place, if anything is.
    pub(crate) rewritten: Option<Box<Rewritten>>,
}

/// What is sent in the place of a request.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) body: Bytes,
    pub(crate) call: CompiledCall,
    pub(crate) outline: Outline,
    /// What of it is expected to be read from the cache.
    pub(crate) predicted: CacheUse,
    /// How many tokens less than the client's.
    pub(crate) saved: i64,
    /// How to go on, where it offers tools of ours.
    pub(crate) own: Option<Box<Recipe>>,
}

/// How a request is made: what of it is the client's, and what is not.
#[derive(Debug)]
pub(crate) struct Recipe {
    policy: PolicyConfig,
    format: Format,
    model: String,
    read: Read,
    change: Change,
    /// What a cache of the client's requests is not shared across: the key that a compile gives them is not sent.
    scope: String,
    /// Whether what came would not fit.
    must: bool,
    own: OwnTools,
}

/// What of a request is changed, beside what is said with it.
#[derive(Clone, Debug)]
struct Change {
    /// Those of the client's tools that are offered.
    theirs: Vec<ToolDefinition>,
    /// How much of the history is shown.
    history: HistoryPolicy,
    /// The marks that are set.
    marks: Option<MarkPolicy>,
}

/// Which of the requests for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// The client's.
    First,
    /// One of ours, with what our tools gave.
    Later,
    /// The same, in which the model may call no tool.
    Last,
}

impl Weighed {
    /// Takes down what was sent. Only the first round is the client's: the others would not have been.
    pub(crate) fn book(
        &self,
        accounts: &Accounts,
        sent: Option<&Rewritten>,
        round: Round,
    ) -> Booked {
        let outline = sent.map_or(&self.original, |sent| &sent.outline);
        let passed = (round == Round::First).then_some(&self.original);
        accounts.book(&self.account, &self.terms, outline, passed, self.at_ms)
    }
}

/// The time, as caches are weighed by.
pub(crate) fn now_ms(engine: &Engine) -> u64 {
    u64::try_from(engine.now_ms()).unwrap_or(0)
}

/// How long a request waits to be rewritten.
pub(crate) const fn patience(policy: &PolicyConfig) -> Duration {
    Duration::from_millis(policy.ingest_timeout_ms)
}

/// What to send in the place of what was read and stored. `None`: nobody can say, as the provider holds the history.
///
/// # Errors
/// The model is not known, or the compiler refuses.
pub(crate) async fn rewrite(
    accounts: &Accounts,
    policy: PolicyConfig,
    format: Format,
    stored: &mut Stored,
    read: Read,
) -> Result<Option<Weighed>, Miss> {
    if read.is_elsewhere() {
        return Ok(None);
    }
    inject(&policy, format, stored, &read)
        .await
        .map_err(|error| miss(&error))?;
    let ingested = &mut stored.ingested;
    let chat = ingested.chat.clone();
    let catalogue = chat.engine().catalogue();
    let model = read.transcript.model.clone();
    let model = model.ok_or_else(|| Miss::new("rewrite", "the request names no model"))?;
    let spec = catalogue.resolve(&model).map_err(|error| miss(&error))?;
    let mut recipe = Recipe {
        change: Change {
            theirs: read.transcript.tools.clone(),
            history: history(&policy),
            marks: policy.cache_marks.then(MarkPolicy::default),
        },
        policy,
        format,
        model,
        read,
        scope: String::new(),
        must: false,
        own: OwnTools::of_layers(&chat),
    };
    let target = recipe.target();
    let request = target.request(catalogue).map_err(|error| miss(&error))?;
    let narrowing = chat.narrowing(&request).await;
    // Written by the hand that writes what may stand for it, so that only what differs differs.
    let as_it_came = |read: &Read, narrowing| {
        whole(&chat, &target, &read.transcript, narrowing).map_err(|error| miss(&error))
    };
    let mut whole = as_it_came(&recipe.read, narrowing)?;
    let space = request.window.saturating_sub(request.reserve);
    recipe.must = whole.report.totals.tokens > space;
    if let Some(most) = recipe.policy.tools.select {
        recipe.change.theirs = selected(most, &recipe.read.transcript);
    }
    let call = recipe.offered(ingested).await?;
    if call.narrowing() != narrowing {
        // Counted as the call is, too.
        whole = as_it_came(&recipe.read, call.narrowing())?;
    }
    let original = whole.payload.sent_outline();
    recipe.scope.clone_from(&original.scope);
    let terms = Terms::of(spec, format);
    let owner = chat.owner().clone();
    let account = (owner, chat.id().clone(), request.model.clone());
    let scales = Scales {
        accounts,
        account: &account,
        terms: &terms,
        original: &original,
        at_ms: now_ms(chat.engine()),
        free: recipe.must || recipe.policy.pays == Pays::Fits,
        sets_marks: recipe.policy.cache_marks,
    };
    let rewritten = match recipe.chosen(call, ingested, &scales).await? {
        None => None,
        Some((call, outline)) => Some(Rewritten {
            saved: tokens(&original).saturating_sub(tokens(&outline)),
            predicted: scales.predict(&outline),
            ..recipe.sent(&chat, call, outline)?
        }),
    };
    let (predicted, at_ms) = (scales.predict(&original), scales.at_ms);
    let own = (!recipe.own.is_empty()).then(|| Box::new(recipe));
    Ok(Some(Weighed {
        predicted,
        rewritten: rewritten.map(|rewritten| Box::new(Rewritten { own, ..rewritten })),
        account,
        terms,
        at_ms,
        original,
        counting: Counting::from(&whole.report),
    }))
}

impl Recipe {
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// The tools of ours that it offers.
    pub(crate) const fn own(&self) -> &OwnTools {
        &self.own
    }

    /// What is to be sent, this call or another, with its outline; `None`: what the client sent.
    async fn chosen(
        &mut self,
        call: CompiledCall,
        ingested: &mut Ingested,
        scales: &Scales<'_>,
    ) -> Result<Option<(CompiledCall, Outline)>, Miss> {
        let outline = self.outline(&call);
        let cut = (call, outline);
        if is_in(&cut.0, &ingested.chat) {
            if scales.free || !self.policy.changes() {
                return Ok(Some(cut));
            }
            // What is to be said is said, whatever it costs; what else is changed has to pay beside that.
            let nothing = Change {
                theirs: self.read.transcript.tools.clone(),
                history: history(&PolicyConfig::default()),
                marks: None,
            };
            return self.changed(cut, nothing, ingested, scales).await.map(Some);
        }
        if self.change.history.window == Window::Whole || !scales.costs_more(&cut.1) {
            let pays = scales.pays(scales.original, &cut.1, &cut.0);
            return Ok(pays.then_some(cut));
        }
        // A cut that moves is written to the cache anew: it has to pay beside the one that was sent before.
        let mut before = self.change.clone();
        before.history.window = Window::Whole;
        let chosen = self.changed(cut, before, ingested, scales).await?;
        let pays = scales.pays(scales.original, &chosen.1, &chosen.0);
        Ok(pays.then_some(chosen))
    }

    /// A call, if it pays beside the one with this change; else that.
    async fn changed(
        &mut self,
        call: (CompiledCall, Outline),
        change: Change,
        ingested: &mut Ingested,
        scales: &Scales<'_>,
    ) -> Result<(CompiledCall, Outline), Miss> {
        let (change, own) = (
            std::mem::replace(&mut self.change, change),
            self.own.clone(),
        );
        let other = self.offered(ingested).await?;
        let outline = self.outline(&other);
        if !scales.pays(&outline, &call.1, &call.0) {
            return Ok((other, outline));
        }
        (self.change, self.own) = (change, own);
        Ok(call)
    }

    /// The next request for the same answer, behind what our tools gave.
    ///
    /// # Errors
    /// The compiler refuses, or the store fails.
    pub(crate) async fn again(
        &mut self,
        ingested: &mut Ingested,
        round: Round,
    ) -> Result<Rewritten, Miss> {
        let call = self.compiled(ingested).await?;
        let outline = self.outline(&call);
        let mut next = self.sent(&ingested.chat, call, outline)?;
        if round == Round::Last {
            let body = String::from_utf8_lossy(&next.body);
            next.body = without_choice(self.format, &body).into();
        }
        Ok(next)
    }

    /// The call, with a tool of ours where something can be read with it.
    async fn offered(&mut self, ingested: &mut Ingested) -> Result<CompiledCall, Miss> {
        let tool = OwnTool::ReadContext;
        let offering = match self.policy.tools.allows(tool.name()) {
            true => Offering::of(&tool, self.format, &self.read),
            false => Offering::Never,
        };
        let due = |call: &CompiledCall| offering.is_due(&tool, call);
        let without = self.own.clone().without(&tool);
        let with = without.clone().with(tool.clone());
        // Where it is likely to be due it is compiled once.
        let shortens = self.has_long_output() || self.must && self.policy.clear.is_some();
        let likely = offering == Offering::Free && shortens;
        if likely {
            self.own = with.clone();
            if let Ok(call) = self.compiled(ingested).await
                && due(&call)
            {
                return Ok(call);
            }
        }
        self.own = without.clone();
        let call = self.compiled(ingested).await?;
        if likely || !due(&call) {
            return Ok(call);
        }
        self.own = with;
        if let Ok(call) = self.compiled(ingested).await {
            return Ok(call);
        }
        self.own = without;
        Ok(call)
    }

    /// Whether an output is so long that it is previewed.
    fn has_long_output(&self) -> bool {
        let Some(most) = self
            .policy
            .preview
            .filter(|_| self.change.history.preview.is_some())
        else {
            return false;
        };
        let is_long = |item: &Item| {
            matches!(item, Item::FunctionCallOutput(_)) && item.text().len() as u64 > most
        };
        self.read.transcript.items.iter().any(is_long)
    }

    async fn compiled(&self, ingested: &mut Ingested) -> Result<CompiledCall, Miss> {
        let (chat, target) = (ingested.chat.clone(), self.target());
        let options = CompileOptions {
            // Those of this request: what was stored may be of another that said the same.
            instructions: Some(&self.read.transcript.instructions),
            ..CompileOptions::default()
        };
        let refused = |error: EngineError| miss(&error);
        let call = if self.must && self.policy.compact.is_some() {
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
        if !call.renames().is_empty() {
            let why = "it has tools with names that the provider refuses";
            return Err(Miss::new("rewrite", why));
        }
        Ok(call)
    }

    /// A call as a provider's cache sees what goes out with it.
    fn outline(&self, call: &CompiledCall) -> Outline {
        let mut outline = call.payload.sent_outline();
        outline.scope.clone_from(&self.scope);
        outline
    }

    /// What goes out with a call's history.
    fn sent(
        &self,
        chat: &Conversation,
        call: CompiledCall,
        outline: Outline,
    ) -> Result<Rewritten, Miss> {
        let body = splice(self.format, &self.read.body, &call.payload.to_json());
        let body = body.map_err(|error| miss(&error))?;
        // What was stored before secrets were taken out may hold some.
        let body = match chat.engine().secrets() {
            Some(secrets) => secrets.redact(&body).into_owned(),
            None => body,
        };
        Ok(Rewritten {
            body: body.into(),
            call,
            outline,
            predicted: CacheUse::default(),
            saved: 0,
            own: None,
        })
    }

    fn target(&self) -> Target {
        let Self { policy, read, .. } = self;
        let mut options = read.transcript.options.clone();
        let window = policy.limit_tokens;
        // An output limit made for the model's window would leave nothing of a smaller one.
        options.max_output_tokens = options
            .max_output_tokens
            .filter(|limit| window.is_none_or(|window| *limit <= window / 2));
        let target = Target::new(self.format, self.model.as_str())
            .options(options)
            .tools(self.change.theirs.clone())
            .also_tools(self.own.definitions())
            .marks(self.change.marks)
            .history(self.change.history.clone());
        // It counts as one of the marks that a request may have.
        let target = match read.field("cache_control") {
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
fn whole(
    chat: &Conversation,
    target: &Target,
    transcript: &Transcript,
    narrowing: Option<Narrowing>,
) -> Result<Compiled, CompileError> {
    let history = HistoryPolicy {
        clear: Clear::Never,
        ..HistoryPolicy::for_one_call()
    };
    let target = target.clone().window(ENDLESS).history(history).marks(None);
    chat.compile_given(transcript, &target, narrowing)
}

fn history(policy: &PolicyConfig) -> HistoryPolicy {
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
            threshold: Size::Characters(characters),
            when: Previewing::Always,
            ..PreviewPolicy::default()
        }),
        ..HistoryPolicy::default()
    }
}

fn tokens(outline: &Outline) -> i64 {
    i64::try_from(outline.tokens()).unwrap_or(i64::MAX)
}

fn miss(error: &dyn std::error::Error) -> Miss {
    Miss::of("rewrite", error)
}
