//! What a policy makes of a request: the conversation compiled at what the client sent, in the place of its history.
//!
//! It is sent only where it is another request, fits, and costs less, is the only one that fits, or has something to say
//! that the client's has not. Not here: what is shown of a history (`contexture-compile`), which policy (`choice`).

use std::time::Duration;

use bytes::Bytes;
use contexture::compile::{
    Band, CacheRules, Clear, ClearPolicy, CompileError, Compiled, Compiler, Content, Contribution,
    HistoryPolicy, MarkPolicy, Outline, PreviewPolicy, Previewing, Rates, Size, Target, Window,
};
use contexture::ir::Transcript;
use contexture::{
    Catalogue, CompileOptions, CompiledCall, Conversation, EngineError, Format, PrepareOptions,
};

use crate::config::{Pays, PolicyConfig, WindowConfig};
use crate::proxy::accounts::{Account, Accounts, Booked, Terms};
use crate::proxy::injected::{inject, is_in};
use crate::proxy::matching::{Miss, Read, Stored};
use crate::proxy::select::selected;
use crate::proxy::splice::splice;

/// Larger than every window.
const ENDLESS: u64 = 1 << 40;

/// A request that was looked at.
#[derive(Debug)]
pub(crate) struct Weighed {
    pub(crate) account: Account,
    pub(crate) terms: Terms,
    /// What the client sent.
    pub(crate) original: Outline,
    /// What is to be sent in its place, if anything is.
    pub(crate) rewritten: Option<Rewritten>,
}

/// What is sent in the place of a request.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) body: Bytes,
    pub(crate) call: CompiledCall,
    pub(crate) outline: Outline,
    /// How many tokens less than the client's.
    pub(crate) saved: i64,
}

impl Weighed {
    /// Takes down what was sent.
    pub(crate) fn book(&self, accounts: &Accounts, sent: Option<&Rewritten>, at_ms: i64) -> Booked {
        let outline = sent.map_or(&self.original, |sent| &sent.outline);
        let at_ms = u64::try_from(at_ms).unwrap_or(0);
        accounts.book(&self.account, &self.terms, outline, &self.original, at_ms)
    }
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
    policy: &PolicyConfig,
    format: Format,
    stored: &mut Stored,
    read: &Read,
) -> Result<Option<Weighed>, Miss> {
    if read.is_elsewhere() {
        return Ok(None);
    }
    let chat = stored.ingested.chat.clone();
    inject(policy, stored).await.map_err(|error| miss(&error))?;
    let catalogue = chat.engine().catalogue();
    let model = read.transcript.model.as_deref();
    let model = model.ok_or_else(|| Miss::new("rewrite", "the request names no model"))?;
    let spec = catalogue.resolve(model).map_err(|error| miss(&error))?;
    let target = target(policy, format, model, read);
    let request = target.request(catalogue).map_err(|error| miss(&error))?;
    // Written by the hand that writes what may stand for it, so that only what differs differs.
    let whole = whole(catalogue, &target, &read.transcript).map_err(|error| miss(&error))?;
    let original = whole.payload.outline();
    let rules = CacheRules::of(spec, format);
    let mut weighed = Weighed {
        account: (
            chat.owner().clone(),
            chat.id().clone(),
            request.model.clone(),
        ),
        terms: Terms {
            rates: Rates::of(&spec.prices, rules.kind, original.tokens()),
            rules,
        },
        original,
        rewritten: None,
    };
    let space = request.window.saturating_sub(request.reserve);
    let must = whole.report.totals.tokens > space || !whole.report.omitted.is_empty();
    let target = match policy.tools.select {
        Some(most) => target.tools(selected(most, &read.transcript)),
        None => target,
    };
    let compacts = must && policy.compact.is_some();
    let mut call = compiled(&chat, &target, compacts, stored, read).await?;
    if !call.renames().is_empty() {
        let why = "it has tools with names that the provider refuses";
        return Err(Miss::new("rewrite", why));
    }
    let mut outline = call.payload.outline();
    let at_ms = u64::try_from(chat.engine().now_ms()).unwrap_or(0);
    let Weighed {
        account,
        terms,
        original,
        ..
    } = &weighed;
    let free = must || policy.pays == Pays::Fits;
    let pays = |now: &Outline, then: &Outline| {
        !is_same(now, then) && (free || accounts.pays(account, terms, now, then, at_ms))
    };
    let asked = is_in(&call, &chat);
    if asked && !free && policy.cuts() {
        // What is to be said is said, whatever it costs; what else is changed has to pay beside that.
        let whole = target.history(history(&PolicyConfig::default()));
        let bare = compiled(&chat, &whole, false, stored, read).await?;
        let all = bare.payload.outline();
        if !pays(&all, &outline) {
            (call, outline) = (bare, all);
        }
    }
    if !(asked || pays(original, &outline)) {
        return Ok(Some(weighed));
    }
    let tokens = |outline: &Outline| i64::try_from(outline.tokens()).unwrap_or(i64::MAX);
    let body = splice(format, &read.body, &call.payload.to_json());
    let body = body.map_err(|error| miss(&error))?;
    // What was stored before secrets were taken out may hold some.
    let body = match chat.engine().secrets() {
        Some(secrets) => secrets.redact(&body).into_owned(),
        None => body,
    };
    weighed.rewritten = Some(Rewritten {
        saved: tokens(original).saturating_sub(tokens(&outline)),
        body: body.into(),
        call,
        outline,
    });
    Ok(Some(weighed))
}

/// A request as it came: all of it, as far as any provider would take it.
fn whole(
    catalogue: &Catalogue,
    target: &Target,
    transcript: &Transcript,
) -> Result<Compiled, CompileError> {
    let history = HistoryPolicy {
        clear: Clear::Never,
        ..HistoryPolicy::for_one_call()
    };
    let target = target.clone().window(ENDLESS).history(history).marks(None);
    let mut compiler = Compiler::new(catalogue);
    if !transcript.instructions.is_empty() {
        let content = Content::Instructions(transcript.instructions.clone());
        compiler = compiler.with(Contribution::new("instructions", Band::System, content));
    }
    compiler.compile(&transcript.items, &target)
}

async fn compiled(
    chat: &Conversation,
    target: &Target,
    compacts: bool,
    stored: &mut Stored,
    read: &Read,
) -> Result<CompiledCall, Miss> {
    let options = CompileOptions {
        // Those of this request: what was stored may be of another that said the same.
        instructions: Some(&read.transcript.instructions),
        ..CompileOptions::default()
    };
    let refused = |error: EngineError| miss(&error);
    if !compacts {
        return chat.compile_with(target, options).await.map_err(refused);
    }
    let how = PrepareOptions::default();
    let prepared = chat.prepare_with(target, &how, options).await;
    let prepared = prepared.map_err(refused)?;
    // The answer goes behind the compaction, whichever request is sent.
    stored.ingested.head = prepared.call.base();
    Ok(prepared.call)
}

fn target(policy: &PolicyConfig, format: Format, model: &str, read: &Read) -> Target {
    let mut options = read.transcript.options.clone();
    let window = policy.limit_tokens;
    // An output limit made for the model's window would leave nothing of a smaller one.
    options.max_output_tokens = options
        .max_output_tokens
        .filter(|limit| window.is_none_or(|window| *limit <= window / 2));
    let target = Target::new(format, model)
        .options(options)
        .tools(read.transcript.tools.clone())
        .marks(policy.cache_marks.then(MarkPolicy::default))
        .history(history(policy));
    match window {
        Some(window) => target.window(window),
        None => target,
    }
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

/// Whether a provider would see the same request.
fn is_same(a: &Outline, b: &Outline) -> bool {
    let pairs = || a.segments.iter().zip(&b.segments);
    a.segments.len() == b.segments.len()
        && pairs().all(|(a, b)| a.hash == b.hash && a.marks == b.marks)
}

fn miss(error: &dyn std::error::Error) -> Miss {
    Miss::of("rewrite", error)
}
