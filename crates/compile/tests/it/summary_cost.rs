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
    sessions: usize,
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
        self.sessions += 1;
        self.usage += usage;
        self.input += cost(0);
        self.whole += cost(ANSWER);
    }

    fn dollars(pico: u128) -> f64 {
        pico as f64 / 1e12
    }
}

/// A session is summed up when all of it has been sent: its older 60 per cent. Sessions below the shortest prefix that the provider
/// caches are the same with and without us, as nothing of them is ever read; they are left out and counted.
#[test]
fn summary_behind_the_last_request_reads_nearly_all_of_it() {
    for (target, least_share, most_input) in [
        (Target::anthropic("claude-sonnet-4-5"), 950, 0.20),
        (Target::openai_responses("gpt-5.6"), 930, 0.25),
        (Target::openai_chat("gpt-4.1"), 930, 0.60),
    ] {
        let format = target.format();
        let counter = counter_of(format);
        let spec = target.model_spec(Catalogue::builtin()).unwrap();
        let rules = CacheRules::for_model(&spec, format);
        let target = target.marker_policy(Some(MarkerPolicy::default()));
        let (mut before, mut after) = (Totals::default(), Totals::default());
        let (mut short, mut shares) = (0, Vec::new());
        for session in sessions() {
            let items: Vec<Item> = session.path.iter().map(|one| (*one.item).clone()).collect();
            // A request ends with the user's side: what the model said last is not sent to it.
            let last = items.iter().rposition(|item| !item.is_model_output());
            let items = &items[..=last.unwrap()];
            let compiler = session.system.iter().cloned().fold(
                Compiler::new(Catalogue::builtin()),
                Compiler::with_contribution,
            );
            let compiled = compiler.compile(items, &target).unwrap();
            let sent = compiled.payload.to_json();
            let covered: Vec<CoveredItem<'_>> = items[..items.len() * (100 - RETAINED) / 100]
                .iter()
                .enumerate()
                .map(|(index, item)| CoveredItem {
                    index,
                    item,
                    hash: None,
                    origin: None,
                })
                .collect();
            let options = SummaryOptions::default();
            let text = summary_request(&covered, &options);
            let question: [Item; 1] = [Message::text(Role::User, text).into()];
            let next = continue_request(format, &sent, &question, 8_192).unwrap();
            let used = predict_continued(format, (&sent, &next), &rules, counter).unwrap();
            if used.read == 0 {
                short += 1;
                continue;
            }
            shares.push(used.read * 1_000 / used.total_tokens());
            after.add(used, &target);
            before.add(own_request(&covered, &options, &target, &rules), &target);
        }
        shares.sort_unstable();
        let all = after.usage.read * 1_000 / after.usage.total_tokens();
        let input = after.input as f64 / before.input as f64;
        let whole = after.whole as f64 / before.whole as f64;
        println!(
            "{}: {} sessions, {short} too short to be cached; read {all} of 1,000, least {}, middle {}; input ${:.4} instead of ${:.4} \
             ({input:.3}), with answers ${:.4} instead of ${:.4} ({whole:.3})",
            target.model(),
            after.sessions,
            shares[0],
            shares[shares.len() / 2],
            Totals::dollars(after.input),
            Totals::dollars(before.input),
            Totals::dollars(after.whole),
            Totals::dollars(before.whole),
        );
        assert!(all >= least_share && input <= most_input);
    }
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
