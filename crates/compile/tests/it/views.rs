//! How the history is shown: cleared, covered, pinned, in a window.

use contexture_catalogue::Catalogue;
use contexture_compile::{
    CachePolicy, CacheRules, CacheState, Clear, ClearPolicy, CompileInput, CompileRequest,
    Compiled, Cover, EpochReason, HistoryPolicy, Link, MarkerPolicy, OmitReason, PathItem, Plan,
    PreviewPolicy, Rewriting, Scratch, Window, compile, read_tool,
};
use contexture_ir::{FunctionCall, Item, NodeId, Reasoning};
use contexture_wire::Format;

use crate::fixtures::{Quarter, assistant, output, request, user};
use crate::invariants::check_report;

const CLEARED: &str = "[Old tool result content cleared]";

/// `count` rounds of one call with an output of 100 tokens each, of a function of its own each.
fn calls(count: usize) -> Vec<PathItem> {
    let mut items = vec![user("the task")];
    for at in 0..count {
        let id = format!("c{at}");
        items.push(FunctionCall::new(&id, format!("tool_{at}"), "{}").into());
        items.push(output(&id, &format!("{at:<400}")));
    }
    PathItem::from_items(items)
}

fn run(path: &[PathItem], covers: &[Cover], request: &CompileRequest, plan: &Plan) -> Compiled {
    let input = CompileInput {
        path: path.into(),
        covers,
        dropped_rules: &[],
        passes: &[],
        contributions: &[],
        plan,
        request,
        counter: &Quarter,
        cancel: None,
    };
    let compiled = compile(&input, &mut Scratch::new()).unwrap();
    check_report(&compiled, path, "a view");
    compiled
}

fn clearing(policy: ClearPolicy) -> HistoryPolicy {
    HistoryPolicy {
        clear: Clear::By(policy),
        ..HistoryPolicy::default()
    }
}

/// With the prices and the cache of a model.
fn priced(limit: u64) -> CompileRequest {
    let model = Catalogue::builtin().resolve("claude-sonnet-4-5").unwrap();
    let mut request = request(Format::Anthropic, limit);
    request.cache = CachePolicy {
        rules: CacheRules::for_model(model, Format::Anthropic),
        marker_policy: Some(MarkerPolicy::default()),
        prices: model.prices.clone(),
        state: CacheState::Warm,
        content: None,
    };
    request
}

/// Path indexes of what was rewritten.
fn rewritten(compiled: &Compiled, how: Rewriting) -> Vec<usize> {
    let all = compiled.report.rewritten.iter();
    all.filter(|one| one.rewriting == how)
        .map(|one| one.index)
        .collect()
}

#[test]
fn old_outputs_are_cleared_when_something_has_to_go() {
    let path = calls(20);
    let roomy = run(
        &path,
        &[],
        &request(Format::OpenAiChat, 10_000),
        &Plan::default(),
    );
    assert_eq!(roomy.report.rewritten, []);

    let mut narrow = request(Format::OpenAiChat, 2_000);
    let compiled = run(&path, &[], &narrow, &Plan::default());
    let cleared = rewritten(&compiled, Rewriting::Cleared);
    assert!(cleared.len() > 5 && cleared.len() < 18, "{cleared:?}");
    // The oldest, without a gap, and no item is gone.
    assert_eq!(
        cleared,
        (0..cleared.len()).map(|at| 2 + 2 * at).collect::<Vec<_>>()
    );
    assert_eq!(compiled.report.omitted, []);
    assert!(compiled.payload.to_json().contains(CLEARED));
    // Down to the mark, so that there is room for the next calls.
    assert!(
        compiled.report.totals.tokens <= 1_450,
        "{:?}",
        compiled.report.totals
    );

    narrow.history.clear = Clear::Never;
    let never = run(&path, &[], &narrow, &Plan::default());
    assert_eq!(never.report.rewritten, []);
    assert!(!never.report.omitted.is_empty());
}

#[test]
fn what_is_cleared_stays_cleared_and_nothing_else_is() {
    let all = calls(60);
    let request = request(Format::Anthropic, 3_000);
    let mut plan = Plan::default();
    let mut epochs = Vec::new();
    let mut before: Vec<usize> = Vec::new();
    for length in (3..all.len()).step_by(2) {
        let compiled = run(&all[..length], &[], &request, &plan);
        let cleared = rewritten(&compiled, Rewriting::Cleared);
        if compiled.report.epoch.opened {
            epochs.push((length, compiled.report.epoch.reason));
        } else {
            assert_eq!(cleared, before, "the frontier moved within an epoch");
        }
        before = cleared;
        plan = compiled.plan;
    }
    let moved = epochs.len() - 1;
    assert!((1..=8).contains(&moved), "not a sliding window: {epochs:?}");
    assert_eq!(epochs[1].1, EpochReason::HistoryCleared, "{epochs:?}");
}

#[test]
fn what_the_policy_keeps_is_not_cleared() {
    let mut path = calls(20);
    let Item::FunctionCallOutput(failed) = &*path[2].item else {
        panic!("an output")
    };
    let failed = contexture_ir::FunctionCallOutput {
        is_error: Some(true),
        ..failed.clone()
    };
    path[2] = PathItem::new(Item::from(failed));
    path[6].pinned = true;
    let mut request = request(Format::OpenAiChat, 2_000);
    request.history = clearing(ClearPolicy {
        keep_tools: ["tool_1".to_owned()].into(),
        keep_recent: 10,
        ..ClearPolicy::default()
    });
    request.history.trim.low_water = 100;
    let compiled = run(&path, &[], &request, &Plan::default());
    let cleared = rewritten(&compiled, Rewriting::Cleared);
    // Not the error (2), not tool_1's (4), not the pinned one (6), none of the newest ten (22 …).
    assert_eq!(cleared, [8, 10, 12, 14, 16, 18, 20]);
}

#[test]
fn small_outputs_are_left_alone() {
    let mut items = vec![user("the task")];
    for at in 0..30 {
        let id = format!("c{at}");
        items.push(FunctionCall::new(&id, format!("tool_{at}"), "{}").into());
        items.push(output(&id, "ok"));
        items.push(assistant(&"thinking aloud ".repeat(20)));
    }
    let path = PathItem::from_items(items);
    let compiled = run(
        &path,
        &[],
        &request(Format::OpenAiChat, 1_500),
        &Plan::default(),
    );
    assert_eq!(compiled.report.rewritten, []);
    assert!(!compiled.report.omitted.is_empty());
}

#[test]
fn an_output_goes_when_its_call_was_made_again() {
    let mut items = vec![user("the task")];
    for at in 0..8 {
        let id = format!("c{at}");
        // The same arguments, written otherwise.
        let arguments = if at % 2 == 0 {
            r#"{"a":1,"b":2}"#
        } else {
            r#"{ "b": 2, "a": 1 }"#
        };
        items.push(FunctionCall::new(&id, "read", arguments).into());
        items.push(output(&id, &"x".repeat(400)));
    }
    items.push(user("go on"));
    let path = PathItem::from_items(items);
    let mut request = request(Format::OpenAiChat, 800);
    request.history = clearing(ClearPolicy::default());
    let compiled = run(&path, &[], &request, &Plan::default());
    assert_eq!(
        rewritten(&compiled, Rewriting::Repeated),
        [2, 4, 6, 8, 10, 12, 14]
    );
    request.history = clearing(ClearPolicy {
        repeated: false,
        ..ClearPolicy::default()
    });
    let compiled = run(&path, &[], &request, &Plan::default());
    assert!(rewritten(&compiled, Rewriting::Repeated).is_empty());
}

#[test]
fn old_thoughts_are_left_out() {
    let thought = || {
        Item::from(Reasoning {
            content: Some(vec![contexture_ir::Part::output_text("hm ".repeat(100))]),
            signature: Some("c2ln".to_owned()),
            format: Some("anthropic-claude-v1".to_owned()),
            ..Reasoning::default()
        })
    };
    let mut items = Vec::new();
    for at in 0..10 {
        items.extend([
            user(&format!("question {at}")),
            thought(),
            assistant("answer"),
        ]);
    }
    items.push(user("and?"));
    let path = PathItem::from_items(items);
    let request = request(Format::Anthropic, 700);
    let compiled = run(&path, &[], &request, &Plan::default());
    let gone: usize = compiled
        .report
        .omitted
        .iter()
        .filter(|span| span.reason == OmitReason::Cleared)
        .map(|span| span.items)
        .sum();
    assert_eq!(gone, 10, "{:?}", compiled.report.omitted);
}

#[test]
fn a_pinned_round_is_sent_whole_and_in_its_place() {
    let mut path = calls(40);
    path[22].pinned = true;
    let mut request = request(Format::Anthropic, 1_000);
    request.history.clear = Clear::Never;
    let compiled = run(&path, &[], &request, &Plan::default());
    let json = compiled.payload.to_json();
    assert!(json.contains("tool_10") && json.contains(&format!("{:<400}", 10)));
    assert!(!json.contains("tool_11\"") && json.contains("tool_39"));
}

#[test]
fn a_window_of_turns_is_cut_in_steps() {
    let mut request = request(Format::OpenAiChat, 100_000);
    request.history.window = Window::Turns(10);
    let items = |count: usize| {
        let turns = (0..count).flat_map(|at| [user(&format!("q{at}")), assistant("a")]);
        PathItem::from_items(turns.collect::<Vec<_>>())
    };
    let (mut plan, mut begins) = (Plan::default(), Vec::new());
    for turns in 1..40 {
        let mut path = items(turns);
        path.pop();
        let compiled = run(&path, &[], &request, &plan);
        let sent = compiled.payload.to_json().matches("\"user\"").count();
        // The first question is always sent.
        assert!(sent <= 11, "{sent} of {turns}");
        begins.push(compiled.plan.trim.map_or(0, |trim| trim.index));
        plan = compiled.plan;
    }
    begins.dedup();
    assert!(begins.len() > 5 && begins.len() < 12, "{begins:?}");
}

/// Law 12: what a compaction stands for is the original again without the cover.
#[test]
fn a_cover_is_shown_in_place_and_taken_back() {
    let compaction = r#"{"type":"compaction","summary":[{"type":"summary_text","text":"ten calls, all fine"}],"ctx:covers":{}}"#;
    let mut path = calls(12);
    path.push(PathItem::new(Item::parse(compaction).unwrap()));
    path.push(PathItem::new(user("and now?")));
    for format in Format::PROVIDERS {
        let request = request(format, 10_000);
        let whole = run(&path, &[], &request, &Plan::default());
        assert!(!whole.payload.to_json().contains("all fine"));
        let without: Vec<PathItem> = path
            .iter()
            .filter(|item| item.item.kind() != "compaction")
            .cloned()
            .collect();
        let original = run(&without, &[], &request, &Plan::default());
        assert_eq!(whole.payload.to_json(), original.payload.to_json());

        let cover = Cover {
            compaction: 25,
            first: 1,
            last: 20,
        };
        let covered = run(&path, &[cover], &request, &whole.plan);
        assert_eq!(covered.report.epoch.reason, EpochReason::HistoryCompacted);
        let json = covered.payload.to_json();
        let (summary, kept) = (
            json.find("all fine").unwrap(),
            json.find("tool_10").unwrap(),
        );
        assert!(
            summary < kept && !json.contains("tool_9\""),
            "{format}: {json}"
        );
        let span = &covered.report.omitted[0];
        assert_eq!(
            (span.first, span.last, span.reason),
            (1, 20, OmitReason::Covered)
        );

        let back = run(&path, &[], &request, &covered.plan);
        assert_eq!(back.payload.to_json(), whole.payload.to_json());
        assert_eq!(back.report.epoch.reason, EpochReason::HistoryCompacted);
    }
}

/// Long outputs are previewed from the first time they are sent, so nothing sent earlier changes.
/// Items with nodes: only what is stored has a link.
fn stored(items: impl IntoIterator<Item = Item>) -> Vec<PathItem> {
    let mut path = PathItem::from_items(items);
    for item in &mut path {
        item.node = Some(NodeId::derive("node", &[item.hash.as_bytes()]));
    }
    path
}

#[test]
fn long_outputs_are_previewed_at_once() {
    let mut request = request(Format::Anthropic, 100_000);
    request.history.preview = Some(PreviewPolicy::default());
    let long = format!(
        "{}\nerror: it broke\n{}",
        "fine\n".repeat(3_000),
        "fine\n".repeat(3_000)
    );
    let mut items = vec![user("the task")];
    let (mut plan, mut before) = (Plan::default(), String::new());
    for at in 0..4 {
        let id = format!("c{at}");
        items.push(FunctionCall::new(&id, "read", "{}").into());
        items.push(output(&id, &format!("{at}{long}")));
        let path = stored(items.clone());
        let compiled = run(&path, &[], &request, &plan);
        assert_eq!(rewritten(&compiled, Rewriting::Previewed).len(), at + 1);
        assert_eq!(compiled.report.epoch.opened, at == 0);
        let json = compiled.payload.to_json();
        let link = Link::new(path[compiled.report.rewritten[at].index].hash).to_string();
        assert!(json.contains(link.as_str()) && json.contains("error: it broke"));
        assert!(json.len() < 6_000 * (at + 1));
        let rows = &compiled.report.segments;
        let last = rows.iter().find(|row| row.rule.starts_with("last round"));
        let last = last.unwrap();
        assert_eq!(last.rule, "last round; 1 output previewed");
        assert!(last.omitted_tokens > last.tokens);
        let start = json.rfind("]}],").unwrap();
        assert!(json.starts_with(&before), "{before}\n{json}");
        before = json[..start].to_owned();
        plan = compiled.plan;
    }
}

/// What is kept of rounds that were cut is told as what is sent after them.
#[test]
fn preview_in_pinned_round_is_reported_when_others_are_trimmed() {
    let mut path = calls(60);
    path.splice(
        3..3,
        stored([
            FunctionCall::new("long", "read", "{}").into(),
            output("long", &"fine\n".repeat(3_000)),
            FunctionCall::new("cut", "read", "{}").into(),
            output("cut", &"good\n".repeat(3_000)),
        ]),
    );
    path[3].pinned = true;
    let mut request = request(Format::OpenAiChat, 4_000);
    request.history = HistoryPolicy {
        clear: Clear::Never,
        preview: Some(PreviewPolicy::default()),
        ..HistoryPolicy::default()
    };
    let compiled = run(&path, &[], &request, &Plan::default());
    assert!(compiled.plan.trim.unwrap().index > 6);
    assert_eq!(rewritten(&compiled, Rewriting::Previewed), [4]);
    let link = Link::new(path[compiled.report.rewritten[0].index].hash).to_string();
    assert!(compiled.payload.to_json().contains(link.as_str()));
}

/// Below what fits, clearing is a matter of money: the report has both figures.
#[test]
fn clearing_that_is_not_needed_must_pay() {
    let path = calls(40);
    let mut request = priced(10_000);
    let mut compiled_with = |calls: u64, state: CacheState| {
        request.history = HistoryPolicy::default();
        let first = run(&path[..79], &[], &request, &Plan::default());
        request.history = clearing(ClearPolicy {
            trigger: 40,
            low_water: 20,
            calls,
            ..ClearPolicy::default()
        });
        request.cache.state = state;
        run(&path, &[], &request, &first.plan)
    };
    let few = compiled_with(2, CacheState::Warm);
    let worth = few.report.cache.rewriting.unwrap();
    assert!(!worth.rewrite && worth.saving < worth.cost && worth.saving > 0);
    assert_eq!(few.report.rewritten, []);
    assert!(!few.report.epoch.opened);

    let many = compiled_with(1_000, CacheState::Warm);
    let worth = many.report.cache.rewriting.unwrap();
    assert!(worth.rewrite && worth.saving > worth.cost);
    assert!(!many.report.rewritten.is_empty());
    assert_eq!(many.report.epoch.reason, EpochReason::HistoryCleared);

    // What nobody holds any more costs nothing to rewrite.
    let cold = compiled_with(1, CacheState::Cold);
    assert_eq!(cold.report.cache.rewriting.unwrap().cost, 0);
    assert!(!cold.report.rewritten.is_empty());
}

/// A rewriting for money waits until the one before has paid back.
#[test]
fn the_next_rewriting_waits_until_the_last_has_paid_back() {
    let path = calls(40);
    let mut request = priced(10_000);
    let first = run(&path[..79], &[], &request, &Plan::default());
    request.history = clearing(ClearPolicy {
        trigger: 40,
        low_water: 20,
        calls: 100,
        ..ClearPolicy::default()
    });
    let mut plan = first.plan;
    plan.payback_calls = 2;
    for owes in [1, 0] {
        let waits = run(&path, &[], &request, &plan);
        let worth = waits.report.cache.rewriting.unwrap();
        assert!(!worth.rewrite && worth.saving > worth.cost);
        assert_eq!(
            (waits.report.rewritten.len(), waits.plan.payback_calls),
            (0, owes)
        );
        plan = waits.plan;
    }
    let done = run(&path, &[], &request, &plan);
    assert!(done.report.cache.rewriting.unwrap().rewrite);
    assert!(
        (1..100).contains(&done.plan.payback_calls),
        "{}",
        done.plan.payback_calls
    );
    // Another model has another cache, in which nothing was rewritten yet.
    request.model = "other".to_owned();
    assert_eq!(run(&path, &[], &request, &done.plan).plan.payback_calls, 0);
}

/// The tool to read the rest with writes the cache anew: a little that is spared is not worth that, much is, and where
/// the tool is offered already anything is that was not sent yet.
#[test]
fn previews_begin_once_they_pay() {
    let mut request = priced(100_000);
    request.history.preview = Some(PreviewPolicy::default());
    let mut items: Vec<Item> = calls(60).iter().map(|one| (*one.item).clone()).collect();
    let path = PathItem::from_items(items.clone());
    let sent = run(&path, &[], &request, &Plan::default());
    assert!(!sent.plan.previews);
    let mut long = |id: &str, lines: usize| {
        items.push(FunctionCall::new(id, "read", "{}").into());
        items.push(output(id, &format!("{id}\n").repeat(lines)));
        PathItem::from_items(items.clone())
    };
    let little = long("some", 1_200);
    let whole = run(&little, &[], &request, &sent.plan);
    let worth = whole.report.cache.rewriting.unwrap();
    assert!(!worth.rewrite && worth.saving < worth.cost);
    assert!(rewritten(&whole, Rewriting::Previewed).is_empty());
    assert!(!whole.plan.previews && !whole.report.epoch.opened);

    let mut offered = request.clone();
    offered.tools = vec![read_tool()];
    let before = run(&path, &[], &offered, &Plan::default());
    let at_once = run(&little, &[], &offered, &before.plan);
    assert_eq!(rewritten(&at_once, Rewriting::Previewed), [122]);
    assert!(at_once.plan.previews && !at_once.report.epoch.opened);

    // Both are previewed in the one step that writes everything anew, and what comes later as it comes.
    let next = run(&long("short", 1), &[], &request, &whole.plan);
    let much = long("more", 20_000);
    let begun = run(&much, &[], &request, &next.plan);
    assert!(begun.report.cache.rewriting.unwrap().rewrite);
    assert_eq!(rewritten(&begun, Rewriting::Previewed), [122, 126]);
    assert_eq!(begun.report.epoch.reason, EpochReason::HistoryPreviewed);
    let later = run(&long("last", 1_200), &[], &request, &begun.plan);
    assert_eq!(rewritten(&later, Rewriting::Previewed), [122, 126, 128]);
    assert!(!later.report.epoch.opened);

    // What does not fit is previewed whatever it costs.
    let mut narrow = priced(12_000);
    narrow.history.preview = Some(PreviewPolicy::default());
    let forced = run(&much, &[], &narrow, &Plan::default());
    assert_eq!(rewritten(&forced, Rewriting::Previewed), [126]);
}
