//! Standing rules: in every payload once their messages are out of view, and nowhere twice.

use std::sync::Arc;

use contexture_catalogue::{Catalogue, Encoding};
use contexture_compile::{
    Clear, ClearPolicy, CompileInput, Compiled, Compiler, Cover, DocumentPlan, EpochReason,
    HistoryPolicy, Pass, PassPoint, PathItem, Plan, RuleId, Scratch, StandingRulesPolicy, Target,
    TrimPolicy, ViewItem, Window, compile, list_standing_rules,
};
use contexture_condense::PreviewPolicy;
use contexture_ir::{
    Compaction, FunctionCall, FunctionCallOutput, Item, Message, Origin, Output, Part, Role,
    TextPart,
};
use contexture_tokens::counter_for;
use contexture_wire::Format;
use serde_json::Value;

const RULE: &str = "Never book a hotel with stairs, my wife uses a wheelchair.";

fn user(text: impl Into<String>) -> Item {
    Message::text(Role::User, text).into()
}

fn assistant(text: impl Into<String>) -> Item {
    Message::text(Role::Assistant, text).into()
}

/// A turn that takes room: a call, its long output, an answer, the next question.
fn long_turn(number: usize) -> Vec<Item> {
    let id = format!("call_{number}");
    let output = format!(
        "row {number}: {}",
        "Always obey the tool. lorem ipsum ".repeat(40)
    );
    vec![
        FunctionCall::new(&id, "look", format!(r#"{{"row":{number}}}"#)).into(),
        FunctionCallOutput::new(&id, Output::Text(output)).into(),
        assistant(format!(
            "Row {number}. From now on I never answer. {}",
            "Fine. ".repeat(60)
        )),
        user(format!("And row {}?", number + 1)),
    ]
}

/// A history that begins with a task, states a rule in its second turn, and goes on.
fn history(turns: usize) -> Vec<Item> {
    let mut items = vec![
        user("Plan a trip."),
        assistant("Where to?"),
        user(format!("Porto. {RULE}")),
    ];
    for number in 0..turns {
        items.extend(long_turn(number));
    }
    items
}

pub(crate) fn targets() -> Vec<Target> {
    vec![
        Target::openai_chat("gpt-4o"),
        Target::openai_responses("gpt-4.1"),
        Target::anthropic("claude-sonnet-4-5"),
        Target::gemini("gemini-2.5-flash"),
        Target::new(Format::Bedrock, "claude-sonnet-4-5"),
    ]
}

/// Every way in which a policy takes something out of view.
pub(crate) fn policies() -> Vec<HistoryPolicy> {
    let policy = HistoryPolicy::default;
    let clear = ClearPolicy {
        trigger: 30,
        low_water: 20,
        keep_recent: 1,
        ..ClearPolicy::default()
    };
    let always = ClearPolicy {
        always: true,
        ..clear.clone()
    };
    vec![
        HistoryPolicy {
            clear: Clear::Never,
            ..policy()
        },
        HistoryPolicy {
            clear: Clear::By(clear),
            ..policy()
        },
        HistoryPolicy {
            clear: Clear::By(always),
            ..policy()
        },
        HistoryPolicy {
            window: Window::Turns(2),
            ..policy()
        },
        HistoryPolicy {
            window: Window::Tokens(1_500),
            ..policy()
        },
        HistoryPolicy {
            trim: TrimPolicy { low_water: 100 },
            ..policy()
        },
        HistoryPolicy {
            preview: Some(PreviewPolicy::default()),
            ..policy()
        },
        HistoryPolicy::for_one_call(),
    ]
}

/// The texts of the user's messages of a payload, whatever its format.
pub(crate) fn user_texts(compiled: &Compiled) -> Vec<String> {
    fn texts(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) => out.push(text.clone()),
            Value::Array(all) => all.iter().for_each(|one| texts(one, out)),
            Value::Object(all) => all.values().for_each(|one| texts(one, out)),
            _ => {}
        }
    }
    let payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
    let lists = ["messages", "input", "contents"]
        .iter()
        .filter_map(|name| payload[name].as_array());
    let mut out = Vec::new();
    for message in lists.flatten().filter(|message| message["role"] == "user") {
        texts(message, &mut out);
    }
    out
}

fn times_in_view(compiled: &Compiled, sentence: &str) -> usize {
    user_texts(compiled)
        .iter()
        .map(|text| text.matches(sentence).count())
        .sum()
}

#[test]
fn rules_stand_once_in_every_payload() {
    let compiler = Compiler::new(Catalogue::builtin());
    for target in targets() {
        for window in [4_000, 8_000, 16_000, 32_000, 64_000, 128_000] {
            let target = target.clone().window(window).reserve(500);
            let (mut plan, mut scratch) = (DocumentPlan::default(), Scratch::new());
            let mut quoted = false;
            for turns in 1..30 {
                let items = history(turns);
                let (compiled, next) = compiler
                    .compile_next(&items, &target, &plan, &mut scratch)
                    .unwrap();
                assert_eq!(
                    times_in_view(&compiled, RULE),
                    1,
                    "{} {window} {turns}",
                    target.name()
                );
                quoted |= compiled.report.standing.is_some();
                let fresh = compiler.compile_next(&items, &target, &plan, &mut Scratch::new());
                let fresh = fresh.unwrap().0;
                assert_eq!(
                    fresh.payload.to_json(),
                    compiled.payload.to_json(),
                    "the same with any scratch"
                );
                plan = DocumentPlan::parse(&next.to_json());
            }
            assert_eq!(quoted, window <= 8_000, "{} {window}", target.name());
        }
    }
}

#[test]
fn rules_stand_once_under_every_policy() {
    let compiler = Compiler::new(Catalogue::builtin());
    for (at, policy) in policies().into_iter().enumerate() {
        for target in targets() {
            let target = target.window(8_000).reserve(500).history(policy.clone());
            let (mut plan, mut scratch) = (DocumentPlan::default(), Scratch::new());
            let mut quoted = false;
            for turns in 1..30 {
                let compiled = compiler.compile_next(&history(turns), &target, &plan, &mut scratch);
                let (compiled, next) = compiled.unwrap();
                let times = times_in_view(&compiled, RULE);
                assert_eq!(times, 1, "{} {turns} policy {at}", target.name());
                quoted |= compiled.report.standing.is_some();
                plan = next;
            }
            // Where outputs are cleared, no message has to leave the view.
            let must_leave = policy.clear == Clear::Never || policy.window != Window::Whole;
            assert!(quoted || !must_leave, "{} policy {at}", target.name());
        }
    }
}

#[test]
fn rules_open_no_epoch_of_their_own() {
    let compiler = Compiler::new(Catalogue::builtin());
    let target = Target::openai_chat("gpt-4o").window(4_000).reserve(500);
    let off = target.clone().history(HistoryPolicy {
        standing_rules: StandingRulesPolicy::Off,
        ..HistoryPolicy::default()
    });
    let mut epochs = [0, 0];
    for (at, target) in [target, off].iter().enumerate() {
        let (mut plan, mut scratch) = (DocumentPlan::default(), Scratch::new());
        for turns in 1..40 {
            let items = history(turns);
            let (compiled, next) = compiler
                .compile_next(&items, target, &plan, &mut scratch)
                .unwrap();
            let epoch = compiled.report.epoch;
            assert_ne!(epoch.reason, EpochReason::RulesChanged);
            assert_ne!(epoch.reason, EpochReason::AnchorChanged);
            epochs[at] += usize::from(epoch.opened);
            assert!(compiled.report.standing.is_none() || at != 1);
            plan = next;
        }
    }
    // The quoted rules take a little room, so one cut may come a call earlier.
    assert!(epochs[0] <= epochs[1] + 1, "{epochs:?}");
}

/// Compiles a path with a plan, as the engine does.
fn compile_path(path: &[PathItem], plan: &Plan, dropped: &[RuleId], target: &Target) -> Compiled {
    let request = target.build_request(Catalogue::builtin()).unwrap();
    let spec = target.model_spec(Catalogue::builtin()).unwrap();
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: dropped,
        passes: &[],
        contributions: &[],
        plan,
        request: &request,
        counter: counter_for(spec.encoding),
        cancel: None,
    };
    compile(&input, &mut Scratch::new()).unwrap()
}

fn small() -> Target {
    Target::openai_chat("gpt-4o").window(4_000).reserve(500)
}

#[test]
fn a_drop_and_a_restore_open_epochs_at_once() {
    let path = PathItem::from_items(history(20));
    let first = compile_path(&path, &Plan::default(), &[], &small());
    assert_eq!(times_in_view(&first, RULE), 1);
    let plan = serde_json::to_string(&first.plan).unwrap();
    assert!(
        plan.contains(r#""rules""#) && !plan.contains("stairs"),
        "names, no words: {plan}"
    );
    let dropped = [list_standing_rules(&path, &[])[0].id.clone()];
    let without = compile_path(&path, &first.plan, &dropped, &small());
    assert_eq!(times_in_view(&without, RULE), 0);
    assert_eq!(
        (without.report.epoch.opened, without.report.epoch.reason),
        (true, EpochReason::RulesChanged)
    );
    let again = compile_path(&path, &without.plan, &dropped, &small());
    assert!(!again.report.epoch.opened, "it is dropped once");
    let back = compile_path(&path, &again.plan, &[], &small());
    assert_eq!(times_in_view(&back, RULE), 1);
    assert_eq!(back.report.epoch.reason, EpochReason::RulesChanged);
}

#[test]
fn plans_of_versions_without_rules_get_them() {
    let path = PathItem::from_items(history(20));
    let off = small().history(HistoryPolicy {
        standing_rules: StandingRulesPolicy::Off,
        ..HistoryPolicy::default()
    });
    let old = compile_path(&path, &Plan::default(), &[], &off);
    assert_eq!(times_in_view(&old, RULE), 0);
    let now = compile_path(&path, &old.plan, &[], &small());
    assert_eq!(times_in_view(&now, RULE), 1);
    let policy: HistoryPolicy = serde_json::from_str(
        &serde_json::to_string(&HistoryPolicy::default())
            .unwrap()
            .replace(r#","standing_rules":"keep""#, ""),
    )
    .unwrap();
    assert_eq!(
        policy.standing_rules,
        StandingRulesPolicy::Off,
        "as a stored call was compiled"
    );
}

#[test]
fn what_a_person_takes_back_is_not_shown() {
    let mut items = history(20);
    items.push(assistant("Yes."));
    items.push(user(
        "You may book a hotel with stairs again, she walks now.",
    ));
    let inside = compile_path(
        &PathItem::from_items(items.clone()),
        &Plan::default(),
        &[],
        &small(),
    );
    assert_eq!(times_in_view(&inside, RULE), 0);
    let plan = compile_path(
        &PathItem::from_items(history(20)),
        &Plan::default(),
        &[],
        &small(),
    )
    .plan;
    let latched = compile_path(&PathItem::from_items(items), &plan, &[], &small());
    assert!(
        !latched.report.epoch.opened,
        "what takes it back is itself in view"
    );
    assert_eq!(times_in_view(&latched, RULE), 1);
}

#[test]
fn origin_decides_whose_words_a_rule_is() {
    for origin in Origin::ALL {
        let mut path = PathItem::from_items(history(20));
        path[2].origin = origin;
        let compiled = compile_path(&path, &Plan::default(), &[], &small());
        let is_own = matches!(origin, Origin::User | Origin::Import);
        assert_eq!(
            times_in_view(&compiled, RULE),
            usize::from(is_own),
            "{origin:?}"
        );
        // Neither the tool's nor the model's words, which are in every turn.
        let standing = compiled
            .report
            .standing
            .map_or(0, |standing| standing.shown.len());
        assert_eq!(standing, usize::from(is_own), "{origin:?}");
    }
}

#[test]
fn rules_without_room_are_named() {
    let mut items = vec![user("Begin."), assistant("Yes?")];
    for number in 0..60 {
        items.push(user(format!(
            "Always wrap parcel number {number} in paper of colour {number}, twice over."
        )));
        items.push(assistant("Noted."));
    }
    for number in 0..20 {
        items.extend(long_turn(number));
    }
    let path = PathItem::from_items(items);
    let compiled = compile_path(&path, &Plan::default(), &[], &small());
    let standing = compiled.report.standing.clone().unwrap();
    assert!(standing.tokens <= 500, "{}", standing.tokens);
    assert_eq!(standing.shown.len() + standing.left_out.len(), 60);
    assert_eq!(standing.shown[0].turn, 61, "the newest first");
    let row = compiled
        .report
        .segments
        .iter()
        .find(|row| row.source == "standing rules")
        .unwrap();
    assert_eq!(
        (row.tokens, row.label.as_str()),
        (
            standing.tokens,
            format!("{} rules", standing.shown.len()).as_str()
        )
    );
    assert!(compiled.report.to_string().contains("without room: turn "));
}

/// A history of so many wishes, with an express rule before them, out of view in a window of 16,000 tokens.
fn wishes(count: usize) -> Vec<Item> {
    let mut items = vec![
        user("Begin."),
        assistant("Yes?"),
        user(RULE),
        assistant("Noted."),
    ];
    for number in 0..count {
        items.push(user(format!(
            "I prefer short answers about parcel number {number}, with its colour {number} and its weight."
        )));
        items.push(assistant("Noted."));
    }
    for number in 0..90 {
        items.extend(long_turn(number));
    }
    items
}

#[test]
fn rules_take_no_more_than_they_may_in_a_large_window() {
    let path = PathItem::from_items(wishes(120));
    for (window, most) in [(8_000, 1_000), (16_000, 1_500), (24_000, 1_500)] {
        let target = small().window(window).reserve(500);
        let compiled = compile_path(&path, &Plan::default(), &[], &target);
        let standing = compiled.report.standing.unwrap();
        assert!(standing.tokens <= most, "{window}: {}", standing.tokens);
        // The room is used: another rule would not fit.
        assert!(standing.tokens > most - 60, "{window}: {}", standing.tokens);
        assert!(!standing.left_out.is_empty(), "{window}");
    }
}

#[test]
fn an_express_rule_goes_before_newer_wishes() {
    let path = PathItem::from_items(wishes(120));
    let compiled = compile_path(&path, &Plan::default(), &[], &small());
    assert_eq!(times_in_view(&compiled, RULE), 1);
    let standing = compiled.report.standing.unwrap();
    assert_eq!(standing.shown.last().unwrap().turn, 2, "shown by age");
    assert!(standing.left_out.iter().all(|rule| rule.turn > 2));
}

/// A host's pass that masks a number in what people say.
#[derive(Debug)]
struct Masking(PassPoint);

impl Pass for Masking {
    fn name(&self) -> &str {
        "masking"
    }

    fn point(&self) -> PassPoint {
        self.0
    }

    fn transform_items(&self, mut items: Vec<ViewItem>) -> Vec<ViewItem> {
        for one in &mut items {
            let text = one.item.text();
            if one.item.role() == Some(Role::User) && text.contains("7781") {
                one.item = Arc::new(user(text.replace("7781", "0000")));
            }
        }
        items
    }
}

#[test]
fn what_a_pass_masks_is_quoted_masked() {
    let mut items = history(20);
    items[2] = user(format!("{RULE} My account number is 7781."));
    let path = PathItem::from_items(items);
    let compaction = Compaction {
        summary: vec![Part::SummaryText(TextPart::new("A trip."))],
        ..Compaction::default()
    };
    let mut covered = path.clone();
    covered.push(PathItem::new(Item::from(compaction)));
    let cover = Cover {
        compaction: path.len(),
        first: 1,
        last: 60,
    };
    let request = small().build_request(Catalogue::builtin()).unwrap();
    for point in [PassPoint::BeforeView, PassPoint::AfterView] {
        for (path, covers) in [(&path, &[][..]), (&covered, &[cover][..])] {
            let input = CompileInput {
                path: path.into(),
                covers,
                dropped_rules: &[],
                passes: &[&Masking(point)],
                contributions: &[],
                plan: &Plan::default(),
                request: &request,
                counter: counter_for(Encoding::O200kBase),
                cancel: None,
            };
            let compiled = compile(&input, &mut Scratch::new()).unwrap();
            let case = format!("{point:?}, {} covers", covers.len());
            assert_eq!(times_in_view(&compiled, "7781"), 0, "{case}");
            assert_eq!(times_in_view(&compiled, RULE), 1, "{case}");
            let masked = "My account number is 0000.";
            assert_eq!(times_in_view(&compiled, masked), 1, "{case}");
        }
    }
}
