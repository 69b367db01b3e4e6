//! What recorded sessions cost under policies, call by call, beside what they would have cost as they came: computed from
//! what the upstream received, and not by the ledger, which must say the same.
//!
//! By the ledger no session costs more. By what was received the bound is 0.2 %: arguments of calls are weighed as they are
//! kept, and some formats have them written anew.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use contexture::catalogue::ModelSpec;
use contexture::compile::{
    Band, CacheRules, CacheSimulator, CacheUsage, Clear, Compiled, Compiler, Content, Contribution,
    HistoryPolicy, MarkerPolicy, Outline, Rates, RequestPart, Target, TokenBounds, active_markers,
};
use contexture::engine::Clock;
use contexture::ir::{
    FinishReason, Item, Message, RequestOptions, ResponseInfo, Role, Transcript, Usage,
};
use contexture::wire::{Dialect, DocumentKind};
use contexture::{Catalogue, Engine, Format, lift, lower};
use contexture_store_testkit::test_seed;
use contexture_upstream_testkit::{Received, UpstreamResponse as Scripted};
use serde_json::Value;

use super::Proxied;

const TARGETS: [(Format, &str); 4] = [
    (Format::Anthropic, "claude-sonnet-4-5"),
    (Format::OpenAiResponses, "gpt-5.6"),
    (Format::OpenAiChat, "gpt-4.1"),
    (Format::Gemini, "gemini-3.1-pro-preview"),
];

/// Between two calls of a session: what was cached is still there, or is not.
const GAPS: [i64; 2] = [20_000, 600_000];

const POLICIES: [(&str, &str); 3] = [
    ("clear", "clear = { keep_recent = 3 }\n"),
    ("window", "window = { turns = 4 }\n"),
    ("manifest", "compact = \"manifest\"\nlimit_tokens = 12000\n"),
];

/// The window of the third policy, and what of it is the answer's.
const LIMIT: u64 = 12_000;
const ANSWER: u64 = 1_000;

/// A short session in which a window that moves whenever it may costs more than it saves.
const DEAR: usize = 21;

/// A session as it was recorded.
pub(super) struct Session {
    pub(super) name: String,
    pub(super) instructions: Vec<Message>,
    pub(super) items: Vec<Item>,
}

/// All tau-bench and SWE-agent sessions, those with long outputs last.
pub(super) fn sessions() -> Vec<Session> {
    let chats = contexture_testdata::chat_histories().into_iter();
    let sessions = chats.map(|(name, messages)| Session::of(name.replace('.', "-"), &messages));
    sessions.collect()
}

impl Session {
    fn of(name: String, messages: &Value) -> Self {
        let lifted = lift(Format::OpenAiChat, &messages.to_string()).unwrap();
        Self {
            name,
            instructions: lifted.transcript.instructions,
            items: lifted.transcript.items,
        }
    }

    /// The lengths of the history at which the model was asked.
    pub(super) fn calls(&self) -> impl Iterator<Item = usize> {
        let is_models = |at: usize| self.items.get(at).map(Item::is_model_output);
        (1..=self.items.len())
            .filter(move |at| is_models(at - 1) == Some(false) && is_models(*at) != Some(false))
    }

    /// The request of a client that sends all of it, and marks it for the cache where that needs marks.
    fn request(&self, length: usize, target: &Target) -> String {
        let compiled = compiled(&self.instructions, &self.items[..length], target);
        compiled.payload.to_json()
    }

    /// What the model answered.
    fn answer(&self, length: usize) -> Vec<Item> {
        let rest = self.items[length..].iter();
        let answer: Vec<Item> = rest
            .take_while(|item| item.is_model_output())
            .cloned()
            .collect();
        match answer.is_empty() {
            true => vec![Message::text(Role::Assistant, "So be it.").into()],
            false => answer,
        }
    }
}

fn compiled(instructions: &[Message], items: &[Item], target: &Target) -> Compiled {
    let content = Content::Instructions(instructions.to_vec());
    let compiler = Compiler::new(Catalogue::builtin());
    let compiler =
        compiler.with_contribution(Contribution::new("instructions", Band::System, content));
    compiler.compile(items, target).unwrap()
}

/// A time that a test sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Hands(pub(super) Arc<AtomicI64>);

impl Clock for Hands {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A provider with a cache of its own, which bills what it received.
struct Provider {
    format: Format,
    spec: &'static ModelSpec,
    /// Where in the range of our counts its own are, in per cent of its width.
    place: u64,
    hands: Hands,
    state: Mutex<State>,
}

/// In the middle: as we guess.
pub(super) const MIDDLE: u64 = 50;

struct State {
    cache: CacheSimulator,
    /// What the model says next.
    answer: Vec<Item>,
    /// What was used of the last request.
    used: CacheUsage,
}

impl Provider {
    fn new(format: Format, model: &str, place: u64, hands: &Hands) -> Arc<Self> {
        let spec = Catalogue::builtin().resolve(model).unwrap();
        Arc::new(Self {
            format,
            spec,
            place,
            hands: hands.clone(),
            state: Mutex::new(State {
                cache: CacheSimulator::new(CacheRules::for_model(spec, format)),
                answer: Vec::new(),
                used: CacheUsage::default(),
            }),
        })
    }

    fn rules(&self) -> CacheRules {
        CacheRules::for_model(self.spec, self.format)
    }

    /// What a cache sees of a request: messages of a person that stand side by side are messages of their own, as they are
    /// in the text, though a compile writes them as one.
    fn outline(&self, body: &str) -> Outline {
        let mut request = lift(self.format, body).unwrap().transcript;
        let is_person =
            |item: &Item| matches!(item, Item::Message(message) if message.role == Role::User);
        let beside = |pair: &[Item]| is_person(&pair[0]) && is_person(&pair[1]);
        let cuts = request.items.windows(2).enumerate();
        let cuts: Vec<usize> = cuts
            .filter(|(_, pair)| beside(pair))
            .map(|(at, _)| at + 1)
            .collect();
        let mut parts: Vec<Vec<Item>> = Vec::new();
        for cut in cuts.into_iter().rev() {
            parts.push(request.items.split_off(cut));
        }
        let target = self.target().options(request.options).tools(request.tools);
        let mut whole = compiled(&request.instructions, &request.items, &target)
            .payload
            .outline_with_markers();
        for part in parts.iter().rev() {
            let more = compiled(&[], part, &self.target())
                .payload
                .outline_with_markers();
            let messages = more
                .segments
                .into_iter()
                .filter(|one| one.part == RequestPart::Messages);
            whole.segments.extend(messages);
        }
        if self.place != MIDDLE {
            for segment in &mut whole.segments {
                let TokenBounds { low, high } = segment.tokens;
                let counted = low + (high - low) * self.place / 100;
                segment.tokens = TokenBounds {
                    low: counted,
                    high: counted,
                };
            }
        }
        whole
    }

    /// A request, read anew from its text.
    fn compiled(&self, body: &str) -> Compiled {
        let request = lift(self.format, body).unwrap().transcript;
        let target = self.target().options(request.options).tools(request.tools);
        compiled(&request.instructions, &request.items, &target)
    }

    /// All of a history, as it is.
    fn target(&self) -> Target {
        let history = HistoryPolicy {
            clear: Clear::Never,
            ..HistoryPolicy::for_one_call()
        };
        let target = Target::new(self.format, self.spec.id.as_str());
        target.window(1 << 40).history(history).marker_policy(None)
    }

    fn bill(&self, cache: &mut CacheSimulator, body: &str) -> CacheUsage {
        let outline = self.outline(body);
        let now = u64::try_from(self.hands.now_ms()).unwrap();
        cache.record_call(&outline, &active_markers(&outline, &self.rules()), now)
    }

    fn answer(&self, received: &Received) -> Scripted {
        let mut state = self.state.lock().unwrap();
        let State { cache, used, .. } = &mut *state;
        *used = self.bill(cache, std::str::from_utf8(&received.body).unwrap());
        let (written, output) = (used.write + used.write_long, 50);
        let usage = Usage {
            input_tokens: Some(used.total_tokens()),
            output_tokens: Some(output),
            total_tokens: Some(used.total_tokens() + output),
            cache_read_tokens: Some(used.read),
            cache_write_tokens: Some(written).filter(|written| *written > 0),
            ..Usage::default()
        };
        let transcript = Transcript {
            model: Some(self.spec.id.clone()),
            items: state.answer.clone(),
            response: Some(ResponseInfo {
                id: Some(format!("answer-{}", self.hands.now_ms())),
                finish: Some(FinishReason::Stop),
                usage: Some(usage),
            }),
            ..Transcript::default()
        };
        let lowered = lower(
            &Dialect::of(self.format),
            DocumentKind::Response,
            &transcript,
        );
        Scripted::from_body(200, "application/json", lowered.json)
    }
}

/// What a call cost, and would have cost as it came.
struct Paid {
    sent: CacheUsage,
    passed: CacheUsage,
    /// Of either.
    rates: [Rates; 2],
}

/// What a session cost.
#[derive(Default)]
pub(super) struct Bill {
    pub(super) calls: usize,
    rewritten: usize,
    /// Whether some of it would not have fitted: what was sent instead had to be.
    forced: bool,
    sent: u128,
    passed: u128,
    /// The calls that cost more than as they came, and how much more.
    negative: (usize, i64),
    /// What the ledger says it saved.
    saved: i64,
}

/// Sessions at one provider, one after the other.
pub(super) struct Course {
    pub(super) proxied: Proxied,
    provider: Arc<Provider>,
    model: &'static str,
    gap: i64,
    /// The tokens of the largest request that fits.
    space: u64,
}

impl Course {
    pub(super) async fn new(
        (format, model): (Format, &'static str),
        place: u64,
        gap: i64,
        policy: &str,
    ) -> Self {
        let hands = Hands(Arc::new(AtomicI64::new(1_700_000_000_000)));
        let provider = Provider::new(format, model, place, &hands);
        let answers = {
            let provider = provider.clone();
            move |received: &Received| provider.answer(received)
        };
        let engine = Engine::in_memory().with_clock(hands);
        let config = format!("[policies.frugal]\n{policy}[[routes]]\npolicy = \"frugal\"\n");
        Self {
            proxied: Proxied::to(answers, engine, &config).await,
            provider,
            model,
            gap,
            space: match policy.contains("limit_tokens") {
                true => LIMIT - ANSWER,
                false => u64::MAX,
            },
        }
    }

    fn path(&self) -> String {
        match self.provider.format {
            Format::Anthropic => "/v1/messages".to_owned(),
            Format::OpenAiResponses => "/v1/responses".to_owned(),
            Format::Gemini => format!("/v1beta/models/{}:generateContent", self.model),
            _ => "/v1/chat/completions".to_owned(),
        }
    }

    pub(super) async fn run(&self, session: &Session) -> Bill {
        let provider = &self.provider;
        let rules = provider.rules();
        let options = RequestOptions {
            max_output_tokens: Some(ANSWER),
            ..RequestOptions::default()
        };
        let target = provider.target().options(options);
        let target = target.marker_policy(Some(MarkerPolicy::default()));
        let fresh = || CacheSimulator::new(rules.clone());
        let mut passing = fresh();
        provider.state.lock().unwrap().cache = fresh();
        let name = [("x-contexture-conversation", session.name.as_str())];
        let (mut bill, mut expected) = (Bill::default(), Vec::new());
        for length in session.calls() {
            provider.hands.0.fetch_add(self.gap, Ordering::Relaxed);
            let document: Value = serde_json::from_str(&session.request(length, &target)).unwrap();
            let body = document.to_string();
            provider.state.lock().unwrap().answer = session.answer(length);
            let answer = self.proxied.ask_with(&self.path(), &document, &name).await;
            answer.ok();
            assert_eq!(
                answer.headers.get("x-contexture-failed"),
                None,
                "{}",
                session.name
            );
            let outcome = self.proxied.outcome(&answer).await;
            let passed = provider.bill(&mut passing, &body);
            let sent = provider.state.lock().unwrap().used;
            bill.forced |= provider.compiled(&body).report.totals.tokens > self.space;
            let rates = [sent, passed].map(|used| {
                Rates::for_request(&provider.spec.prices, rules.kind, used.total_tokens()).unwrap()
            });
            let predicted = &outcome["predicted"]["read"];
            if provider.place == MIDDLE && !is_at_least(predicted, sent.read, &rules) {
                assert_near(predicted, sent.read, &session.name);
            }
            assert_eq!(
                outcome["answer"]["cache_read_tokens"], sent.read,
                "{outcome}"
            );
            bill.calls += 1;
            bill.rewritten += usize::from(outcome["tokens_saved"].is_i64());
            bill.sent += sent.input_cost(&rates[0]);
            bill.passed += passed.input_cost(&rates[1]);
            expected.push(Paid {
                sent,
                passed,
                rates,
            });
        }
        let query = [("conversation", session.name.as_str()), ("limit", "500")];
        let ledger = self.proxied.stand.find("/api/v1/ledger", &query).await.ok();
        bill.saved = ledger["total"]["saved_pico_dollars"].as_i64().unwrap();
        if provider.place == MIDDLE {
            check(&ledger, session, &expected, (&rules, &mut bill));
        }
        bill
    }
}

/// Whether the ledger says the same.
fn check(
    ledger: &Value,
    session: &Session,
    expected: &[Paid],
    (rules, bill): (&CacheRules, &mut Bill),
) {
    let entries = ledger["entries"].as_array().unwrap();
    assert_eq!(entries.len(), expected.len(), "{}", session.name);
    for (entry, paid) in entries.iter().zip(expected) {
        let Paid {
            sent,
            passed,
            rates,
        } = paid;
        let sides = [("sent", sent), ("passed", passed)].into_iter().zip(rates);
        for ((side, used), rates) in sides {
            let said = &entry[side];
            if !is_at_least(&said["read"], used.read, rules) {
                let written = used.write + used.write_long;
                assert_near(&said["read"], used.read, &session.name);
                assert_near(&said["written"], written, &session.name);
                assert_near(&said["fresh"], used.fresh, &session.name);
            }
            // The money is that of the tokens.
            let of = |field: &str, rate: u64| said[field].as_u64().unwrap() * rate;
            let money = of("read", rates.read) + of("written", rates.write);
            let money = money + of("fresh", rates.input);
            assert_eq!(entry[format!("{side}_pico_dollars")], money, "{entry}");
        }
        assert_eq!(
            entry["reported_read_tokens"], sent.read,
            "{}: {entry}",
            session.name
        );
        let saved = entry["saved_pico_dollars"].as_i64().unwrap();
        if saved < 0 {
            bill.negative.0 += 1;
            bill.negative.1 += saved;
        }
    }
    let total = &ledger["total"];
    assert_eq!(total["calls"], expected.len());
    for field in [
        "sent_pico_dollars",
        "passed_pico_dollars",
        "saved_pico_dollars",
    ] {
        let of = |entry: &Value| entry[field].as_i64().unwrap();
        assert_eq!(
            of(total),
            entries.iter().map(of).sum::<i64>(),
            "{}: {field}",
            session.name
        );
    }
}

/// Whether one of us takes a request for too short to be cached, and the other does not: it is about as long as that.
fn is_at_least(said: &Value, tokens: u64, rules: &CacheRules) -> bool {
    let said = said.as_u64().unwrap();
    said.min(tokens) == 0 && said.max(tokens) <= rules.minimum * 21 / 20
}

/// A call's arguments are weighed as they are kept: where they go as an object, that is written a little differently.
#[track_caller]
fn assert_near(said: &Value, tokens: u64, name: &str) {
    let said = said.as_u64().unwrap();
    assert!(
        said.abs_diff(tokens) <= tokens / 50 + 160,
        "{name}: {said}, {tokens}"
    );
}

/// All sessions at a target, one after the other.
struct Row {
    target: (Format, &'static str),
    gap: i64,
    policy: (&'static str, &'static str),
}

impl Row {
    /// In a soak each target with each gap and policy; without, some of them.
    fn all(soak: bool) -> Vec<Self> {
        let mut rows = Vec::new();
        let mut turn = 0;
        for target in TARGETS {
            for gap in GAPS {
                for policy in POLICIES {
                    turn += 1;
                    if soak || turn % 5 == 0 || policy.0 == "window" && gap == GAPS[0] {
                        rows.push(Self {
                            target,
                            gap,
                            policy,
                        });
                    }
                }
            }
        }
        rows
    }

    /// What came of it as a line, and how many paid more.
    async fn run(&self, chosen: &[&Session]) -> (String, usize) {
        let (name, policy) = self.policy;
        let course = Course::new(self.target, MIDDLE, self.gap, policy).await;
        let (mut sum, mut losers) = (Bill::default(), Vec::new());
        let mut forced = (0, 0, 0);
        let dollars = |pico: u128| pico as f64 / 1e12;
        for session in chosen {
            let bill = course.run(session).await;
            if bill.forced {
                forced = (forced.0 + 1, forced.1 + bill.passed, forced.2 + bill.sent);
            } else if bill.saved < 0 || bill.sent > bill.passed + bill.passed / 500 {
                let (sent, passed) = (dollars(bill.sent), dollars(bill.passed));
                losers.push(format!(
                    "\n      {}: {sent:.6} for {passed:.6}",
                    session.name
                ));
            }
            sum.calls += bill.calls;
            sum.rewritten += bill.rewritten;
            sum.sent += bill.sent;
            sum.passed += bill.passed;
            sum.negative.0 += bill.negative.0;
            sum.negative.1 += bill.negative.1;
        }
        let row = format!(
            "{:<24} {:>4}s {name:<9} {:>8} {:>7} {:>9} {:>10.4} {:>10.4} {:>+6.1}% {:>7}; {} entries below zero, {:.4} in all; {} sessions that do not fit: {:.4} for {:.4}{}",
            self.target.1,
            self.gap / 1_000,
            chosen.len(),
            sum.calls,
            sum.rewritten,
            dollars(sum.passed),
            dollars(sum.sent),
            100.0 * (sum.sent as f64 / sum.passed as f64 - 1.0),
            losers.len(),
            sum.negative.0,
            sum.negative.1 as f64 / 1e12,
            forced.0,
            dollars(forced.2),
            dollars(forced.1),
            losers.concat(),
        );
        (row, losers.len())
    }
}

#[test]
fn no_session_costs_more_than_as_it_came_and_the_ledger_says_so() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let all = sessions();
    let (short, long) = all.split_at(200);
    // In a soak every session; without, a few.
    let chosen: Vec<&Session> = match soak {
        true => all.iter().collect(),
        false => {
            let some = short.iter().step_by(67);
            some.chain(short.get(DEAR)).chain(long.first()).collect()
        }
    };
    println!(
        "{:<24} {:>5} {:<9} {:>8} {:>7} {:>9} {:>10} {:>10} {:>7} {:>7}",
        "", "gap", "policy", "sessions", "calls", "rewritten", "as it came", "sent", "", "losers"
    );
    let rows = Row::all(soak);
    // One thread a provider.
    let worse: Vec<String> = std::thread::scope(|scope| {
        let threads = TARGETS.map(|target| {
            let (rows, chosen) = (rows.iter().filter(move |row| row.target == target), &chosen);
            scope.spawn(move || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().build().unwrap();
                runtime.block_on(async {
                    let mut worse = Vec::new();
                    for row in rows {
                        let (line, losers) = row.run(chosen).await;
                        println!("{line}");
                        worse.extend((losers > 0).then_some(line));
                    }
                    worse
                })
            })
        });
        let worse = threads.map(|thread| thread.join().unwrap());
        worse.into_iter().flatten().collect()
    });
    assert_eq!(worse, Vec::<String>::new());
}

/// Counts are ranges where a provider does not say how it counts. What it reports is learned, for both sides alike.
#[tokio::test]
async fn a_provider_that_counts_otherwise_is_not_paid_more() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let all_places = [5, 25, 75, 95];
    let one = usize::try_from(test_seed() % 4).unwrap();
    let (apart, places) = match soak {
        true => (5, &all_places[..]),
        false => (40, &all_places[one..=one]),
    };
    let all = sessions();
    let (short, long) = all.split_at(200);
    let (_, window) = POLICIES[1];
    for target in [TARGETS[0], TARGETS[3]] {
        for place in places {
            let course = Course::new(target, *place, GAPS[0], window).await;
            let mut rewritten = 0;
            for session in short.iter().step_by(apart).chain(long.first()) {
                let bill = course.run(session).await;
                rewritten += bill.rewritten;
                let what = format!("{} at {place} %, {}", target.1, session.name);
                let (sent, passed) = (bill.sent as i64, bill.passed as i64);
                assert!(sent <= passed + passed / 500, "{what}: {sent} for {passed}");
                let off = (passed - sent).abs_diff(bill.saved);
                assert!(
                    off <= passed as u64 / 50,
                    "{what}: saved {} of {passed}, it says {}",
                    passed - sent,
                    bill.saved
                );
            }
            assert!(rewritten > 0);
        }
    }
}
