//! Rows of compiles by callers who keep the history and the plan themselves.

use contexture_catalogue::Catalogue;
use contexture_compile::{
    Clear, ClearPolicy, Compiler, DocumentPlan, EpochReason, HistoryPolicy, PreviewPolicy,
    Previewing, Scratch, Target, TextSize,
};
use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};
use proptest::prelude::*;
use serde_json::Value;

/// A loop's round: a call, its output, an answer, a question.
fn round(number: usize, words: usize) -> Vec<Item> {
    let id = format!("call_{number}");
    let call = FunctionCall::new(&id, "read", format!(r#"{{"row":{number}}}"#));
    let output = format!("row {number} {}", "lorem ipsum dolor ".repeat(words));
    let output = FunctionCallOutput::new(&id, Output::Text(output));
    vec![
        call.into(),
        output.into(),
        Message::text(Role::Assistant, format!("answer {number}")).into(),
        Message::text(Role::User, format!("question {number}")).into(),
    ]
}

fn rounds() -> usize {
    match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 300,
        None => 90,
    }
}

fn start() -> Vec<Item> {
    vec![Message::text(Role::User, "Begin.").into()]
}

fn target() -> Target {
    let history = HistoryPolicy {
        clear: Clear::By(ClearPolicy::default()),
        preview: Some(PreviewPolicy {
            threshold: TextSize::Characters(800),
            when: Previewing::Always,
            ..PreviewPolicy::default()
        }),
        ..HistoryPolicy::default()
    };
    Target::openai_chat("gpt-4o")
        .window(3_000)
        .reserve(500)
        .history(history)
}

/// The share of the last request's messages that the next one begins with.
fn shared(before: &[Value], now: &[Value]) -> f64 {
    let same = before.iter().zip(now).take_while(|(a, b)| a == b);
    same.count() as f64 / before.len() as f64
}

#[test]
fn a_loop_shares_its_prefix_between_epochs() {
    let compiler = Compiler::new(Catalogue::builtin()).with_manifests();
    let (mut items, mut plan) = (start(), DocumentPlan::default());
    let (mut before, mut epochs) = (Vec::new(), Vec::new());
    for number in 0..rounds() {
        // Nothing but the plan goes from call to call, as between processes.
        let read = DocumentPlan::parse(&plan.to_json());
        assert_eq!(read, plan);
        let (compiled, next) = compiler
            .compile_next(&items, &target(), &read, &mut Scratch::new())
            .unwrap();
        let text = compiled.payload.to_json();
        let payload: Value = serde_json::from_str(&text).unwrap();
        let now = payload["messages"].as_array().unwrap().clone();
        let epoch = &compiled.report.epoch;
        if epoch.opened {
            epochs.push(epoch.reason);
        } else {
            assert!(shared(&before, &now) >= 0.95, "round {number}");
        }
        assert!(
            !text.contains("context://"),
            "a link that nobody can follow"
        );
        assert!(next.to_json().len() <= DocumentPlan::MAX_BYTES);
        (before, plan) = (now, next);
        items.extend(round(number, 6 + number % 40));
    }
    assert_eq!(epochs[0], EpochReason::First);
    assert!(!epochs[1..].contains(&EpochReason::First), "{epochs:?}");
    // A loop that cuts at every step would open one for each.
    assert!(epochs.len() < rounds() / 3, "{}", epochs.len());
}

#[test]
fn an_unreadable_plan_is_none_and_says_so() {
    let later = DocumentPlan::default()
        .to_json()
        .replace("\"version\":1", "\"version\":2");
    let long = "x".repeat(DocumentPlan::MAX_BYTES + 1);
    for json in ["", "{}", "null", &later, &long] {
        let plan = DocumentPlan::parse(json);
        let compiler = Compiler::new(Catalogue::builtin());
        let compiled = compiler.compile_next(&start(), &target(), &plan, &mut Scratch::new());
        let epoch = compiled.unwrap().0.report.epoch;
        assert!(epoch.opened);
        assert_eq!(epoch.reason, EpochReason::PlanUnreadable, "{json:.20}");
    }
}

#[test]
fn reported_usage_narrows_later_counts() {
    let compiler = Compiler::new(Catalogue::builtin());
    let target = Target::anthropic("claude-sonnet-4-5");
    let items: Vec<Item> = (0..20).flat_map(|number| round(number, 30)).collect();
    let mut plan = DocumentPlan::default();
    let mut high = Vec::new();
    for _ in 0..12 {
        let (compiled, next) = compiler
            .compile_next(&items, &target, &plan, &mut Scratch::new())
            .unwrap();
        high.push(compiled.report.totals.tokens);
        plan = next;
        plan.learn_from_usage(compiled.report.totals.counted.low);
    }
    // Within an epoch counts stay; the next one has what was learned.
    assert!(high.windows(2).all(|two| two[0] == two[1]), "{high:?}");
    let other = [items, start()].concat();
    let other = compiler.compile_next(&other[1..], &target, &plan, &mut Scratch::new());
    let (other, _) = other.unwrap();
    assert!(
        other.report.totals.tokens < high[0],
        "{}",
        other.report.totals.tokens
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 2_000,
        None => 24,
    }))]

    /// Plans of other histories, cut, damaged or forged: the payload is legal and fits all the same.
    #[test]
    fn a_plan_of_another_history_does_no_harm(
        own in 1_usize..60, other in 1_usize..60, words in 1_usize..60, flip in any::<(u16, u8)>(),
    ) {
        let compiler = Compiler::new(Catalogue::builtin()).with_manifests();
        let history = |rounds: usize, words: usize| -> Vec<Item> {
            start().into_iter().chain((0..rounds).flat_map(|number| round(number, words))).collect()
        };
        let compile = |items: &[Item], plan: &DocumentPlan| {
            compiler.compile_next(items, &target(), plan, &mut Scratch::new()).unwrap()
        };
        let (_, plan) = compile(&history(other, words), &DocumentPlan::default());
        let mut json = plan.to_json().into_bytes();
        let at = usize::from(flip.0) % json.len();
        json[at] = b'0' + flip.1 % 75;
        let forged = DocumentPlan::parse(&String::from_utf8_lossy(&json));
        for plan in [plan, forged] {
            let (compiled, next) = compile(&history(own, words + 1), &plan);
            prop_assert!(compiled.report.totals.tokens <= 2_500);
            prop_assert!(next.to_json().len() <= DocumentPlan::MAX_BYTES);
        }
    }
}
