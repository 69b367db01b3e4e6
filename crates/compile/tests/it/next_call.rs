//! The next call costs what changed: what a compile with a scratch gives is what one without gives, and behind one more message
//! it asks the allocator for as much in a short conversation as in a long one.

use allocation_counter::measure;
use contexture_catalogue::Catalogue;
use contexture_compile::{
    Clear, ClearPolicy, CompileInput, CompileRequest, Compiled, Contribution, Cover, GrowingPath,
    MarkerPolicy, PathItem, PathItems, Plan, PreviewPolicy, Refusal, Scratch, Target, TextSize,
    TrimPolicy, Window, compile, place_markers, predict_usage,
};
use contexture_ir::{Audience, Compaction, Item, Part, Raw, Reasoning};
use contexture_store_testkit::test_seed;
use contexture_wire::Format;
use fastrand::Rng;

use crate::fixtures::{Quarter, assistant, call, output, request, user};
use crate::invariants::check_report;

fn one_in(random: &mut Rng, bound: usize) -> bool {
    random.usize(..bound) == 0
}

/// Compiles with a scratch.
fn next(
    path: PathItems<'_>,
    (covers, contributions): (&[Cover], &[Contribution]),
    request: &CompileRequest,
    plan: &Plan,
    scratch: &mut Scratch,
) -> Result<Compiled, Refusal> {
    let input = CompileInput {
        path,
        covers,
        dropped_rules: &[],
        passes: &[],
        contributions,
        plan,
        request,
        counter: &Quarter,
        cancel: None,
    };
    compile(&input, scratch)
}

/// The next items of a conversation: a question, some steps with calls, an answer; now and then what no model reads, a rule, a
/// pinned message, thinking, a call id that was there before.
fn more_items(random: &mut Rng, at: usize) -> Vec<PathItem> {
    let words = "go on with it ".repeat(random.usize(..12));
    let plain = |item: Item| PathItem::new(item);
    let mut items = vec![match random.usize(..12) {
        0 => PathItem {
            pinned: true,
            ..plain(user(&format!("{at}: keep this")))
        },
        1 => plain(user(&format!("Never touch file number {at} again."))),
        2 => PathItem {
            audience: Audience::USER,
            ..plain(user(&format!("{at}: among us")))
        },
        3 => {
            plain(Item::parse(r#"{"type":"ctx:message","message_id":"m","role":"user"}"#).unwrap())
        }
        _ => plain(user(&format!("question {at}: {words}"))),
    }];
    for step in 0..random.usize(..3) {
        let id = match one_in(random, 20) {
            true => "again".to_owned(),
            false => format!("call_{at}_{step}"),
        };
        if one_in(random, 5) {
            items.push(plain(Item::Reasoning(Reasoning {
                content: Some(vec![Part::input_text("so it is")]),
                signature: Some("AAAA".to_owned()),
                format: Some("anthropic-claude-v1".to_owned()),
                ..Reasoning::default()
            })));
        }
        items.push(plain(call(&id, &format!("{{\"line\":{}}}", at % 7))));
        let long = "a line of the output\n".repeat(random.usize(..60));
        items.push(plain(output(&id, &format!("{at}: {long}"))));
    }
    if !one_in(random, 4) {
        items.push(plain(assistant(&format!("answer {at}: {words}"))));
    }
    items
}

/// A request for a random target, with a random policy.
fn random_request(random: &mut Rng) -> CompileRequest {
    let targets = [
        Target::openai_chat("gpt-4.1"),
        Target::openai_responses("gpt-5.6"),
        Target::anthropic("claude-sonnet-4-5"),
        Target::anthropic("claude-opus-5-5"),
        Target::gemini("gemini-3.1-pro-preview"),
    ];
    let target = &targets[random.usize(..targets.len())];
    let mut request = target.build_request(Catalogue::builtin()).unwrap();
    (request.window, request.reserve) = ([4_500, 9_000, 400_000][random.usize(..3)], 500);
    request.history.window = match random.usize(..5) {
        0 => Window::Turns(9),
        1 => Window::Tokens(3_000),
        _ => Window::Whole,
    };
    request.history.trim = TrimPolicy {
        low_water: [40, 70, 100][random.usize(..3)],
    };
    if one_in(random, 2) {
        request.history.preview = Some(PreviewPolicy {
            threshold: TextSize::Bytes(600),
            ..PreviewPolicy::default()
        });
    }
    if one_in(random, 3) {
        request.history.clear = Clear::By(ClearPolicy {
            trigger: 40,
            always: one_in(random, 2),
            ..ClearPolicy::default()
        });
    }
    if one_in(random, 4) {
        request.cache.marker_policy = None;
    }
    request
}

/// Compares a compile with a scratch and one without.
fn check(
    warm: &Result<Compiled, Refusal>,
    cold: &Result<Compiled, Refusal>,
    path: &[PathItem],
    place: &str,
) {
    let (warm, cold) = match (warm, cold) {
        (Ok(warm), Ok(cold)) => (warm, cold),
        (warm, cold) => {
            assert_eq!(warm.as_ref().err(), cold.as_ref().err(), "{place}");
            return;
        }
    };
    assert_eq!(warm.payload.to_json(), cold.payload.to_json(), "{place}");
    assert_eq!(warm.report, cold.report, "{place}");
    assert_eq!(warm.plan, cold.plan, "{place}");
    assert_eq!(warm.advice, cold.advice, "{place}");
    assert_eq!(warm.payload.outline(), cold.payload.outline(), "{place}");
    check_report(warm, path, place);
    let fingerprint = warm.payload.fingerprint().to_string();
    assert_eq!(warm.report.payload.fingerprint, fingerprint, "{place}");
    let messages = &warm.report.totals.messages;
    let listed = warm.payload.outline().segments.len();
    assert!(*messages <= listed + 64, "{place}: {messages} of {listed}");
}

/// Markers and predictions of a compile are those of its payload's whole outline.
fn check_cache(compiled: &Compiled, plan: &Plan, request: &CompileRequest, place: &str) {
    let Some(policy) = request.cache.marker_policy else {
        return;
    };
    let rules = &request.cache.rules;
    let outline = compiled.payload.outline();
    let target = compiled.plan.prefix.as_ref().map(|prefix| &prefix.target);
    let is_same = plan.prefix.as_ref().map(|prefix| &prefix.target) == target;
    let previous = match is_same {
        true => plan.cached_prefixes.as_slice(),
        false => &[],
    };
    let marking = place_markers(&outline, rules, previous, policy);
    assert_eq!(
        compiled.plan.cached_prefixes, marking.cached_prefixes,
        "{place}"
    );
    let predicted = predict_usage(&outline, rules, &marking.markers, previous);
    assert_eq!(compiled.report.cache.predicted, predicted, "{place}");
}

/// A compaction of the path's first half, with its cover.
fn compact(path: &mut Vec<PathItem>) -> Cover {
    let mut compaction = Compaction {
        summary: vec![Part::input_text("what was done before")],
        ..Compaction::default()
    };
    compaction.extra.set("ctx:covers", Raw::null());
    let last = path.len() / 2;
    path.push(PathItem::new(Item::from(compaction)));
    Cover {
        compaction: path.len() - 1,
        first: 0,
        last,
    }
}

/// One conversation: it grows, and now and then it is edited, rewound, compacted, or compiled for another target.
fn run_conversation(seed: u64, calls: usize) -> usize {
    let mut random = Rng::with_seed(seed);
    let (mut list, mut covers) = (Vec::<PathItem>::new(), Vec::new());
    let mut path = GrowingPath::default();
    let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
    let mut request = random_request(&mut random);
    let mut warm_calls = 0;
    for number in 0..calls {
        let place = format!("seed {seed}, call {number}");
        let rebuilds = match random.usize(..40) {
            0 if list.len() > 4 => {
                let at = random.usize(..list.len());
                list[at] = PathItem::new(user(&format!("edited in call {number}")));
                true
            }
            1 if list.len() > 4 => {
                list.truncate(list.len() / 2);
                covers.clear();
                true
            }
            2 if list.len() > 40 && covers.is_empty() => {
                covers.push(compact(&mut list));
                false
            }
            3 => {
                request = random_request(&mut random);
                false
            }
            4 => {
                plan = Plan::default();
                false
            }
            _ => false,
        };
        // Sometimes several rounds come between two calls.
        for _ in 0..=[0, 0, 0, 3, 30][random.usize(..5)] {
            let at = list.len();
            list.extend(more_items(&mut random, at));
        }
        match rebuilds {
            true => path = list.iter().cloned().collect(),
            false => path.extend(list[path.len()..].iter().cloned()),
        }
        let contributions = [
            Contribution::system("instructions", "Be brief."),
            Contribution::tail("clock", format!("tick {number}")),
        ];
        let contributions = &contributions[..random.usize(..3)];
        let beside = (covers.as_slice(), contributions);
        let warm = next((&path).into(), beside, &request, &plan, &mut scratch);
        let cold = next((&list).into(), beside, &request, &plan, &mut Scratch::new());
        check(&warm, &cold, &list, &place);
        if let Ok(compiled) = warm {
            check_cache(&compiled, &plan, &request, &place);
            warm_calls += 1;
            plan = compiled.plan;
        }
    }
    warm_calls
}

#[test]
fn a_scratch_changes_nothing_of_any_conversation() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (first, conversations) = (test_seed(), if soak { 200 } else { 6 });
    let mut calls = 0;
    for n in 0..conversations {
        // The seed of a place that failed, given again, is the first.
        calls += run_conversation(first.wrapping_add(n), if soak { 150 } else { 20 });
    }
    assert!(calls > 40, "{calls} calls gave a payload");
}

/// What one call behind one more step asks of the allocator, in bytes, and how many items it looks at: the medians of 16 calls.
fn next_call_work(items: usize, request: &CompileRequest) -> (u64, usize) {
    // A question behind the answer to the last one, or a call with its output.
    let item = |at: usize| {
        let id = format!("call_{}", at / 4);
        PathItem::new(match at % 4 {
            0 => assistant(&format!("answer {at}")),
            1 => user(&format!("question {at}")),
            2 => call(&id, &format!("{{\"line\":{at}}}")),
            _ => output(&id, &format!("output {at}")),
        })
    };
    let mut path: GrowingPath = (1..items).map(item).collect();
    let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
    let mut step = |path: &GrowingPath| {
        let compiled = next(path.into(), (&[], &[]), request, &plan, &mut scratch).unwrap();
        plan = compiled.plan;
        scratch.items_read()
    };
    assert_eq!(step(&path), items - 1);
    let (mut bytes, mut read) = (Vec::new(), Vec::new());
    for at in (items..items + 32).step_by(2) {
        path.extend([item(at), item(at + 1)]);
        let mut items_read = 0;
        bytes.push(measure(|| items_read = step(&path)).bytes_total);
        read.push(items_read);
    }
    bytes.sort_unstable();
    read.sort_unstable();
    (bytes[8], read[8])
}

#[test]
fn the_next_call_is_as_much_work_behind_any_history() {
    for format in Format::PROVIDERS {
        for limit in [100_000_000, 20_000] {
            let request = {
                let mut request = request(format, limit);
                request.cache.marker_policy = Some(MarkerPolicy::default());
                request
            };
            let (short, short_read) = next_call_work(2_000, &request);
            let (long, long_read) = next_call_work(32_000, &request);
            println!(
                "{format}, limit {limit}: {short} bytes and {short_read} items behind 2,000 items, \
                 {long} and {long_read} behind 32,000"
            );
            assert!(long <= 100_000, "{format}, {limit}: {long} bytes");
            assert!(
                long * 5 <= short * 6,
                "{format}, {limit}: {short}, then {long} bytes"
            );
            // At most a group of items that has no hash yet, and the newest round.
            assert!(long_read <= 64 + 8, "{format}, {limit}: {long_read} items");
        }
    }
}
