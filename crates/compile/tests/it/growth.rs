//! Compile is a function, and within an epoch its prefix stands still.

use contexture_compile::{Compiled, Contribution, EpochReason, PathItem, Plan, Scratch};
use contexture_wire::Format;
use serde_json::Value;

use crate::fixtures::{assistant, call, once, output, request, sessions, user, with};
use crate::invariants::check_report;

/// Law 4: the same bytes with an empty, a warm and a foreign scratch.
#[test]
fn the_scratch_decides_nothing() {
    let mut shared = Scratch::with_capacity(1 << 16);
    for session in sessions().iter().step_by(13) {
        for format in Format::PROVIDERS {
            let request = request(format, 9_000);
            let cold = once(&session.path, &session.system, &request);
            for _ in 0..2 {
                let plan = Plan::default();
                let warm = with(&session.path, &session.system, &request, &plan, &mut shared);
                match (&cold, &warm) {
                    (Ok(cold), Ok(warm)) => {
                        assert_eq!(cold.payload.to_json(), warm.payload.to_json());
                        assert_eq!(cold.report, warm.report);
                        assert_eq!(cold.plan, warm.plan);
                    }
                    (cold, warm) => assert_eq!(cold.as_ref().err(), warm.as_ref().err()),
                }
            }
        }
    }
}

/// The payload up to its tail, which is its last element.
fn before_tail(compiled: &Compiled) -> String {
    let pieces: Vec<&str> = compiled.payload.json_chunks().collect();
    let [start @ .., comma, tail, _after] = pieces.as_slice() else {
        panic!("a payload has a history and a tail");
    };
    assert!(*comma == "," && tail.contains("tick "), "{tail}");
    start.concat()
}

/// Law 5: turn by turn, within an epoch the payload of the previous call up to its last block is the
/// beginning of the next, whatever the tail says; a new epoch has a reason.
#[test]
fn a_growing_history_only_extends() {
    let mut trims = 0;
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    for session in sessions().iter().step_by(if soak { 1 } else { 22 }) {
        for format in Format::PROVIDERS {
            trims += grow(&session.path, &session.system, format, 4_500);
        }
    }
    assert!(
        trims > if soak { 100 } else { 3 },
        "the sessions are long enough to be trimmed: {trims}"
    );
}

fn grow(path: &[PathItem], system: &[Contribution], format: Format, limit: u64) -> usize {
    let request = request(format, limit);
    let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
    let mut before: Option<(String, u64)> = None;
    let mut trims = 0;
    for length in 1..=path.len() {
        let ends = length == path.len() || path[length].item.is_model_output();
        if !ends || path[length - 1].item.is_model_output() {
            continue;
        }
        let mut contributions = system.to_vec();
        contributions.push(Contribution::tail("clock", format!("tick {length}")));
        let Ok(compiled) = with(
            &path[..length],
            &contributions,
            &request,
            &plan,
            &mut scratch,
        ) else {
            continue;
        };
        check_report(&compiled, &path[..length], "growing");
        let cold = with(
            &path[..length],
            &contributions,
            &request,
            &plan,
            &mut Scratch::new(),
        );
        assert_same(&compiled, &cold.unwrap());
        let json = compiled.payload.to_json();
        let epoch = compiled.report.epoch.clone();
        if let Some((before, number)) = &before {
            if epoch.number == *number {
                assert!(json.starts_with(before), "{format}\n{before}\n{json}");
                assert!(!epoch.opened);
            } else {
                let reasons = [EpochReason::HistoryTrimmed, EpochReason::HistoryCleared];
                assert!(
                    reasons.contains(&epoch.reason),
                    "{format}: {:?}",
                    epoch.reason
                );
                assert!(epoch.opened);
                trims += 1;
            }
        }
        before = Some((before_tail(&compiled), epoch.number));
        plan = compiled.plan;
    }
    trims
}

fn assert_same(warm: &Compiled, cold: &Compiled) {
    assert_eq!(warm.payload.to_json(), cold.payload.to_json());
    assert_eq!(warm.report, cold.report);
    assert_eq!(warm.plan, cold.plan);
}

/// Law 10: a plan is of its path; compiling at an older head with the older plan gives the older bytes.
#[test]
fn branching_back_is_compiling_then() {
    let session = &sessions()[3];
    let request = request(Format::Anthropic, 7_000);
    let mut scratch = Scratch::new();
    let (mut plan, mut kept) = (Plan::default(), Vec::new());
    for length in 1..=session.path.len() {
        let path = &session.path[..length];
        if path[length - 1].item.is_model_output() {
            continue;
        }
        if let Ok(compiled) = with(path, &session.system, &request, &plan, &mut scratch) {
            kept.push((length, plan.clone(), compiled.payload.to_json()));
            plan = compiled.plan;
        }
    }
    assert!(kept.len() > 5);
    for (length, plan, json) in kept {
        let path = &session.path[..length];
        let again = with(path, &session.system, &request, &plan, &mut scratch).unwrap();
        assert_eq!(again.payload.to_json(), json);
    }
}

/// The history `u a u a …` of so many rounds, each of about `size` tokens.
fn rounds(count: usize, size: usize) -> Vec<PathItem> {
    let text = "word".repeat(size / 2);
    let round = |at: usize| [user(&format!("{at:04}{text}")), assistant(&text)];
    PathItem::from_items((0..count).flat_map(round))
}

#[test]
fn the_frontier_stays_until_it_must_move() {
    let request = request(Format::OpenAiChat, 1_000);
    let mut plan = Plan::default();
    let (mut frontiers, mut reasons) = (Vec::new(), Vec::new());
    for count in 1..60 {
        let mut path = rounds(count, 40);
        path.extend(PathItem::from_items([user("and now?")]));
        let compiled = with(&path, &[], &request, &plan, &mut Scratch::new()).unwrap();
        check_report(&compiled, &path, "frontier");
        frontiers.push(compiled.plan.trim.map(|trim| trim.index));
        if compiled.report.epoch.opened {
            reasons.push(compiled.report.epoch.reason);
        }
        assert_eq!(
            compiled.advice.compact.is_some(),
            compiled.plan.trim.is_some()
        );
        plan = compiled.plan;
    }
    frontiers.dedup();
    assert!(
        frontiers.len() < 10,
        "the frontier moved with every call: {frontiers:?}"
    );
    assert!(
        frontiers.len() > 3,
        "the frontier never moved: {frontiers:?}"
    );
    assert_eq!(reasons[0], EpochReason::First);
    assert!(
        reasons[1..]
            .iter()
            .all(|reason| *reason == EpochReason::HistoryTrimmed)
    );
    assert_eq!(reasons.len(), frontiers.len());
}

#[test]
fn a_plan_of_another_path_is_noticed() {
    let request = request(Format::OpenAiChat, 400);
    let compiled = once(&rounds(30, 40), &[], &request).unwrap();
    assert!(compiled.plan.trim.is_some());
    let other = PathItem::from_items([
        user("somebody else"),
        assistant("hello"),
        user("who are you?"),
    ]);
    let again = with(&other, &[], &request, &compiled.plan, &mut Scratch::new()).unwrap();
    assert_eq!(again.report.epoch.reason, EpochReason::HistoryChanged);
    assert_eq!(again.plan.trim, None);
    assert_eq!(again.report.totals.messages, 3);
}

#[test]
fn every_change_of_the_prefix_has_its_reason() {
    let path = PathItem::from_items([user("a"), call("1", "{}"), output("1", "b")]);
    let start = request(Format::Anthropic, 1_000);
    let system = |text: &str| vec![Contribution::system("instructions", text)];
    let first = once(&path, &system("be kind"), &start).unwrap();
    let check = |contributions: &[Contribution], request, expected: Option<EpochReason>| {
        let next = with(
            &path,
            contributions,
            request,
            &first.plan,
            &mut Scratch::new(),
        )
        .unwrap();
        let epoch = next.report.epoch;
        assert_eq!(epoch.opened.then_some(epoch.reason), expected);
        assert_eq!(epoch.number, 1 + u64::from(expected.is_some()));
    };
    check(&system("be kind"), &start, None);
    check(
        &system("be brief"),
        &start,
        Some(EpochReason::InstructionsChanged),
    );
    let mut wider = start.clone();
    wider.window += 1;
    check(&system("be kind"), &wider, Some(EpochReason::TargetChanged));
    let mut tooled = start.clone();
    tooled.tools = vec![contexture_ir::ToolDefinition::Function(
        contexture_ir::FunctionTool {
            name: "look_up".to_owned(),
            ..Default::default()
        },
    )];
    check(&system("be kind"), &tooled, Some(EpochReason::ToolsChanged));
    let mut anchored = system("be kind");
    anchored.push(Contribution::new(
        "memory",
        contexture_compile::Band::Anchor,
        contexture_compile::Content::Text("remember".to_owned()),
    ));
    check(&anchored, &start, Some(EpochReason::AnchorChanged));
    let mut moving = system("be kind");
    moving.push(Contribution::tail("state", "on"));
    check(&moving, &start, None);
}

/// Where a cut brings people's words together they are one message, as they would be within a run, and
/// stay so while the epoch lasts.
#[test]
fn words_that_a_cut_brings_together_are_one_message() {
    let long = "word".repeat(100);
    let mut items = vec![user("the task")];
    for at in 0..6 {
        items.push(assistant(&long));
        items.push(user(&format!("go on {at}")));
    }
    for (format, array, parts) in [
        (Format::Anthropic, "messages", "content"),
        (Format::Gemini, "contents", "parts"),
    ] {
        let request = request(format, 500);
        let path = PathItem::from_items(items.clone());
        let first = once(&path, &[], &request).unwrap();
        check_report(&first, &path, format.as_str());
        let payload: Value = serde_json::from_str(&first.payload.to_json()).unwrap();
        let messages = payload[array].as_array().unwrap();
        let texts = |message: &Value| -> Vec<String> {
            let parts = message[parts].as_array().unwrap().iter();
            parts
                .map(|part| part["text"].as_str().unwrap().to_owned())
                .collect()
        };
        let opening = texts(&messages[0]);
        assert_eq!(opening[0], "the task", "{payload}");
        assert!(
            opening.len() == 2 && opening[1].starts_with("go on "),
            "{payload}"
        );
        let roles: Vec<&str> = messages
            .iter()
            .map(|one| one["role"].as_str().unwrap())
            .collect();
        assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
        assert_eq!(first.report.totals.messages, messages.len());

        let longer = [items.clone(), vec![assistant("yes"), user("good")]].concat();
        let path = PathItem::from_items(longer);
        let next = with(&path, &[], &request, &first.plan, &mut Scratch::new()).unwrap();
        assert!(!next.report.epoch.opened, "{:?}", next.report.epoch);
        let next: Value = serde_json::from_str(&next.payload.to_json()).unwrap();
        assert_eq!(
            next[array].as_array().unwrap()[..messages.len()],
            messages[..]
        );
    }
}
