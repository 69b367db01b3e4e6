//! What a summary of a model costs when it is asked for behind the request that the model answered last, beside one that is asked for
//! with a request of its own: over all recorded sessions, on a simulated cache, at the catalogue's prices.

use contexture_catalogue::Catalogue;
use contexture_compile::compaction::{
    CoveredItem, SummaryOptions, summary_lines, summary_request, summary_task,
};
use contexture_compile::{
    CacheRules, CacheSimulator, CacheUsage, Compiler, Contribution, MarkerPolicy, Outline,
    Question, Target, active_markers, predict_continued,
};
use contexture_ir::{Item, Message, Role};
use contexture_wire::{Format, continue_request};

use crate::fixtures::{counter_of, sessions};

/// How long a summary is, in tokens.
const ANSWER: u64 = 600;
/// How much of a history a compaction leaves, in per cent.
const RETAINED: usize = 40;

/// What summaries of all sessions take.
#[derive(Default)]
struct Totals {
    summaries: usize,
    usage: CacheUsage,
    input: u128,
    whole: u128,
}

impl Totals {
    fn add(&mut self, usage: CacheUsage, target: &Target) {
        let spec = target.model_spec(Catalogue::builtin()).unwrap();
        let cost = |answer| {
            let question = Question {
                input: usage,
                answer,
            };
            question.cost(&spec.prices, spec.cache.kind).unwrap()
        };
        self.summaries += 1;
        self.usage += usage;
        self.input += cost(0);
        self.whole += cost(ANSWER);
    }

    fn dollars(pico: u128) -> f64 {
        pico as f64 / 1e12
    }
}

/// The histories that are summed up: the sessions one by one, and as long as compactions are made of, twenty sessions of tau-bench each. A
/// small dose has a part of them.
fn histories() -> [(&'static str, u64, Vec<History>); 2] {
    let all: Vec<History> = sessions()
        .into_iter()
        .map(|session| {
            let items = session.path.iter().map(|one| (*one.item).clone());
            (session.system, items.collect())
        })
        .collect();
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (step, chunks) = if soak { (1, 10) } else { (20, 1) };
    let (short, swe) = all.split_at(200);
    let joined = short.chunks(20).take(chunks).map(|twenty| {
        let items = twenty.iter().flat_map(|(_, items)| items.clone());
        (twenty[0].0.clone(), items.collect())
    });
    let long = joined.chain(swe.iter().cloned()).collect();
    let each = all.iter().step_by(step).cloned().collect();
    // Sessions alone are shorter than what any window would be compacted for.
    [
        ("each session", 850, each),
        ("twenty sessions each", 950, long),
    ]
}

type History = (Vec<Contribution>, Vec<Item>);

/// A history is summed up when all of it has been sent: its older 60 per cent. What is missing to all of the input is the question itself,
/// some 400 tokens, and what stands behind the last mark or beyond the last step of the cache.
#[test]
fn summary_behind_the_last_request_reads_nearly_all_of_it() {
    for target in [
        Target::anthropic("claude-sonnet-4-5"),
        Target::openai_responses("gpt-5.6"),
        Target::openai_chat("gpt-4.1"),
    ] {
        for (name, least, histories) in histories() {
            let (before, after, mut shares) = measure(&target, &histories);
            shares.sort_unstable();
            let all = after.usage.read * 1_000 / after.usage.total_tokens();
            let input = after.input as f64 / before.input as f64;
            let whole = after.whole as f64 / before.whole as f64;
            println!(
                "{}, {name}: {} summaries; read {all} of 1,000, least {}, middle {}; input ${:.4} instead of ${:.4} ({input:.3}), with \
                 answers ${:.4} instead of ${:.4} ({whole:.3})",
                target.model(),
                after.summaries,
                shares[0],
                shares[shares.len() / 2],
                Totals::dollars(after.input),
                Totals::dollars(before.input),
                Totals::dollars(after.whole),
                Totals::dollars(before.whole),
            );
            assert!(all >= least && input < 1.0, "{all}, {input}");
        }
    }
}

/// What summaries of these histories take, asked for on their own and behind the last request, and what share of the latter is read.
fn measure(target: &Target, histories: &[History]) -> (Totals, Totals, Vec<u64>) {
    let format = target.format();
    let counter = counter_of(format);
    let spec = target.model_spec(Catalogue::builtin()).unwrap();
    let rules = CacheRules::for_model(&spec, format);
    // As large as it must be: what is measured is the price of the question.
    let target = target
        .clone()
        .window(1_000_000)
        .marker_policy(Some(MarkerPolicy::default()));
    let (mut before, mut after) = (Totals::default(), Totals::default());
    let mut shares = Vec::new();
    for (system, items) in histories {
        // A request ends with the user's side: what the model said last is not sent to it.
        let last = items.iter().rposition(|item| !item.is_model_output());
        let items = &items[..=last.unwrap()];
        let compiler = Compiler::new(Catalogue::builtin());
        let compiler = system
            .iter()
            .cloned()
            .fold(compiler, Compiler::with_contribution);
        let sent = compiler.compile(items, &target).unwrap().payload.to_json();
        let covered = CoveredItem::of_items(&items[..items.len() * (100 - RETAINED) / 100]);
        let options = SummaryOptions::default();
        let text = summary_request(&covered, &options);
        let question: [Item; 1] = [Message::text(Role::User, text).into()];
        let next = continue_request(format, &sent, &question, 8_192).unwrap();
        let used = predict_continued(format, (&sent, &next), &rules, counter).unwrap();
        shares.push(used.read * 1_000 / used.total_tokens());
        after.add(used, &target);
        before.add(own_request(&covered, &options, &target, &rules), &target);
    }
    (before, after, shares)
}

/// What a summary takes that is asked for with a system prompt and a request of its own: nothing of it is cached.
fn own_request(
    covered: &[CoveredItem<'_>],
    options: &SummaryOptions,
    target: &Target,
    rules: &CacheRules,
) -> CacheUsage {
    let task = summary_task(&summary_lines(covered, options), None, options);
    let compiled = Compiler::new(Catalogue::builtin())
        .with_contribution(Contribution::system("summariser", task.system))
        .compile(&task.items, target)
        .unwrap();
    let format: Format = target.format();
    let body = compiled.payload.to_json();
    let outline = Outline::parse_request(format, &body, counter_of(format)).unwrap();
    let markers = active_markers(&outline, rules);
    CacheSimulator::new(rules.clone()).predict_usage(&outline, &markers, 0)
}
