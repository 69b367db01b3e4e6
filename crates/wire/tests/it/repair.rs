//! Repair: hand-written histories in a short notation, recorded ones, and laws on random ones.
//!
//! A history is words: `u` a user's message, `a` the model's, `s` the host's, `e` an empty message, `r`
//! a thought, `cX` a call with id X, `oX` an output, `?cX` a half-written call, `?r` a cut-off thought,
//! `tX`/`TX` a custom tool's call and output, `k` bookkeeping, `w`/`W` white space of the user and the
//! model, `x`/`X` a stranger's item on the model's and the user's side, `h` a part nobody knows, `g` a
//! search at OpenAI. Results may also hold `pX` (a made-up
//! output), `LX` (a late output as a message), `^` and `$` (placeholders of the user).

use std::collections::BTreeSet;

use contexture_ir::{
    Extension, FunctionCall, FunctionCallOutput, Item, Message, Output, Part, Raw, Reasoning, Role,
    Status,
};
use contexture_testdata as data;
use contexture_wire::{
    BEGINNING, CONTINUE, Dialect, Format, IssueKind, NO_RESULT, RepairRules, Repaired, Side,
    Unanswered, lift, lower_run, repair, role_runs,
};
use proptest::prelude::*;

fn item(word: &str, place: usize) -> Item {
    let (half, word) = match word.strip_prefix('?') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let status = half.then_some(Status::Incomplete);
    let id = word.get(1..).unwrap_or_default();
    let extension = |kind: &str, raw: String| {
        Item::Extension(Extension {
            kind: kind.to_owned(),
            id: None,
            raw: Raw::parse(raw).unwrap(),
        })
    };
    match word.chars().next().unwrap() {
        'u' => Message::text(Role::User, format!("u{place}")).into(),
        'a' => Message::text(Role::Assistant, format!("a{place}")).into(),
        's' => Message::text(Role::System, format!("s{place}")).into(),
        'e' => Message::text(Role::User, "").into(),
        'w' => Message::text(Role::User, " \n").into(),
        'W' => Message::text(Role::Assistant, "\t").into(),
        'h' => {
            Item::parse(r#"{"type":"message","role":"user","content":[{"type":"acme:hologram"}]}"#)
                .unwrap()
        }
        'x' => extension("x:y", r#"{"type":"x:y"}"#.to_owned()),
        'X' => extension("x:y_response", r#"{"type":"x:y_response"}"#.to_owned()),
        'g' => extension(
            "web_search_call",
            r#"{"type":"web_search_call"}"#.to_owned(),
        ),
        'r' => Reasoning {
            summary: vec![Part::input_text("hm")],
            status,
            ..Reasoning::default()
        }
        .into(),
        'c' => FunctionCall {
            status,
            ..FunctionCall::new(id, "f", "{}")
        }
        .into(),
        'o' => FunctionCallOutput::new(id, Output::Text(format!("o{place}"))).into(),
        't' => extension(
            "custom_tool_call",
            format!(r#"{{"type":"custom_tool_call","call_id":"{id}","name":"t","input":"x"}}"#),
        ),
        'T' => extension(
            "custom_tool_call_output",
            format!(r#"{{"type":"custom_tool_call_output","call_id":"{id}","output":"y"}}"#),
        ),
        'k' => extension("ctx:note", r#"{"type":"ctx:note"}"#.to_owned()),
        other => panic!("{other}"),
    }
}

fn items(words: &str) -> Vec<Item> {
    words
        .split_whitespace()
        .enumerate()
        .map(|(place, word)| item(word, place))
        .collect()
}

fn word(item: &Item) -> String {
    let text = item.text();
    match item {
        Item::Message(_) if text == BEGINNING => "^".into(),
        Item::Message(_) if text == CONTINUE => "$".into(),
        Item::Message(_) if text.starts_with("[A later") => {
            format!(
                "L{}",
                text.split("call ")
                    .nth(1)
                    .unwrap()
                    .split(':')
                    .next()
                    .unwrap()
            )
        }
        Item::Message(message) => match message.role {
            Role::User => "u",
            Role::Assistant => "a",
            _ => "s",
        }
        .into(),
        Item::FunctionCall(call) => format!("c{}", call.call_id),
        Item::FunctionCallOutput(output) if text == NO_RESULT => format!("p{}", output.call_id),
        Item::FunctionCallOutput(output) => format!("o{}", output.call_id),
        Item::Reasoning(_) => "r".into(),
        Item::Compaction(_) => "z".into(),
        Item::Extension(item) => match item.kind.as_str() {
            "ctx:note" => "k".into(),
            "x:y" => "x".into(),
            "x:y_response" => "X".into(),
            "web_search_call" => "g".into(),
            kind => {
                let fields = item.raw.fields().unwrap();
                let id: String =
                    serde_json::from_str(fields.get(&["call_id"]).unwrap().get()).unwrap();
                format!("{}{id}", if kind.ends_with("_output") { 'T' } else { 't' })
            }
        },
    }
}

/// `x` for the hash in a call id that was made up.
fn hide_hash(word: &str) -> String {
    match word.split_once('_') {
        Some((stem, _)) => format!("{stem}_x"),
        None => word.to_owned(),
    }
}

fn mend(items: &[Item], rules: &RepairRules) -> (Vec<Item>, Vec<IssueKind>) {
    let refs: Vec<&Item> = items.iter().collect();
    let repaired = repair(&refs, rules);
    let kinds = repaired.issues.iter().map(|issue| issue.kind).collect();
    (repaired.into_items(), kinds)
}

#[track_caller]
fn check_with(rules: &RepairRules, words: &str, expected: &str, issues: &[IssueKind]) {
    let (mended, kinds) = mend(&items(words), rules);
    let shown: Vec<String> = mended.iter().map(|item| hide_hash(&word(item))).collect();
    assert_eq!(shown.join(" "), expected, "{words}");
    assert_eq!(kinds, issues, "{words}");
}

#[track_caller]
fn check(words: &str, expected: &str, issues: &[IssueKind]) {
    check_with(
        &RepairRules::for_format(Format::Items),
        words,
        expected,
        issues,
    );
}

use IssueKind::{
    CallId, CustomCall, DanglingReasoning, EmptyMessage, ItemId, LateOutput, MisplacedOutput,
    NoBeginning, NoEnd, OrphanOutput, UnansweredCall, Unfinished,
};

#[test]
fn legal_histories_stay() {
    for words in [
        "",
        "u",
        "u a u",
        "s u r c1 c2 o1 o2 r a u",
        "u a c1 o1 c2 o2 a",
        "u r c1 a c2 o1 o2",
        "u t1 T1 a",
        "u c1 k o1 k a",
        "u c1 c2 o1 k o2 u",
        "u c1 r a o1",
    ] {
        check(words, words, &[]);
    }
}

#[test]
fn calls_have_their_outputs_behind_them() {
    check("u c1", "u c1 p1", &[UnansweredCall]);
    check("u c1 u", "u c1 p1 u", &[UnansweredCall]);
    check("u c1 a u o1", "u c1 a o1 u", &[MisplacedOutput]);
    check("u c1 c2 o2 o1", "u c1 c2 o1 o2", &[MisplacedOutput]);
    check("u c1 c2 o1 a o2", "u c1 c2 o1 o2 a", &[MisplacedOutput]);
    check("c1 u c2 o1 a o2", "c1 o1 u c2 a o2", &[MisplacedOutput]);
    check("c1 c2 o2 u", "c1 c2 p1 o2 u", &[UnansweredCall]);
    check("u t1 a T1", "u t1 a T1", &[]);
    check("u t1 u T1", "u t1 T1 u", &[MisplacedOutput]);
}

#[test]
fn outputs_have_their_call() {
    check("u o1 a", "u a", &[OrphanOutput]);
    check("o1 c1 u", "c1 p1 u", &[OrphanOutput, UnansweredCall]);
    check("c1 o1 o1 u", "c1 o1 L1 u", &[LateOutput]);
    check("c1 o1 a o1 o1", "c1 o1 a L1 L1", &[LateOutput, LateOutput]);
    check("u T1", "u", &[OrphanOutput]);
    check("t1 T1 T1", "t1 T1", &[LateOutput]);
}

#[test]
fn unanswered_calls_may_be_stripped() {
    let rules = RepairRules {
        unanswered: Unanswered::Strip,
        ..RepairRules::for_format(Format::Items)
    };
    check_with(&rules, "u c1 a", "u a", &[UnansweredCall]);
    check_with(
        &rules,
        "u r c1 u",
        "u u",
        &[DanglingReasoning, UnansweredCall],
    );
    check_with(&rules, "u r c1 c2 o2", "u r c2 o2", &[UnansweredCall]);
    check_with(
        &rules,
        "u r c1 r a",
        "u r a",
        &[DanglingReasoning, UnansweredCall],
    );
    // No output can be made up for a custom tool's call.
    check("u r t1", "u", &[DanglingReasoning, UnansweredCall]);
}

#[test]
fn what_was_not_finished_goes() {
    check("u ?c1 a", "u a", &[Unfinished]);
    check("u ?c1 o1", "u c1 o1", &[]);
    check("u ?r a", "u a", &[Unfinished]);
    check("u r ?c1", "u", &[DanglingReasoning, Unfinished]);
    check("u r", "u", &[DanglingReasoning]);
    check("u a r u", "u a u", &[DanglingReasoning]);
    check("e u e", "u", &[EmptyMessage, EmptyMessage]);
}

#[test]
fn call_ids_stand_once() {
    let (mended, kinds) = mend(
        &items("c1 o1 c1 c1 o1 o1"),
        &RepairRules::for_format(Format::Items),
    );
    assert_eq!(kinds, [CallId, CallId]);
    let ids: Vec<&str> = mended
        .iter()
        .map(|item| match item {
            Item::FunctionCall(call) => call.call_id.as_str(),
            Item::FunctionCallOutput(output) => output.call_id.as_str(),
            _ => "",
        })
        .collect();
    assert_eq!(ids, ["1", "1", ids[2], ids[3], ids[2], ids[3]]);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 3);
    // Outputs of one step answer its calls in order, others the nearest call.
    assert_eq!(
        (mended[4].text().as_str(), mended[5].text().as_str()),
        ("o4", "o5")
    );
    check(
        "c1 u c1 o1 u",
        "c1 p1 u c1_x o1_x u",
        &[UnansweredCall, CallId],
    );
}

#[test]
fn providers_own_calls_share_the_ids() {
    // A custom tool's call is renamed with its output, as a function's is.
    check("c1 t1 o1 T1", "c1 t1_x o1 T1_x", &[CallId]);
    check(
        "t1 T1 t1 T1 c1 o1",
        "t1 T1 t1_x T1_x c1_x o1_x",
        &[CallId, CallId],
    );
    check("t1 c1 T1 o1", "t1 c1_x T1 o1_x", &[CallId]);
    // What the target does not hear of takes nobody's id.
    let rules = RepairRules::for_format(Format::Anthropic);
    check_with(&rules, "u x c1 o1", "u x c1 o1", &[]);
    // What the provider called itself keeps its id, wherever it stands.
    let native = |json: &str| Item::parse(json).unwrap();
    for (format, own) in [
        (
            Format::OpenAiResponses,
            r#"{"type":"web_search_call","id":"1","status":"completed"}"#,
        ),
        (
            Format::Anthropic,
            r#"{"type":"anthropic:server_tool_use","block":{"type":"server_tool_use","id":"1","name":"web_search","input":{}}}"#,
        ),
    ] {
        let mut history = items("u c1 o1 u");
        history.insert(2, native(own));
        let (mended, kinds) = mend(&history, &RepairRules::for_format(format));
        assert_eq!(kinds, [CallId], "{format}");
        assert_eq!(mended[2], native(own), "{format}");
        let words: Vec<String> = [&mended[1], &mended[3]]
            .map(|item| hide_hash(&word(item)))
            .into();
        assert_eq!(words, ["c1_x", "o1_x"], "{format}");
    }
    // A call that only Chat knows has a tool's message for its output, there and nowhere else.
    let mut history = items("u o1 u");
    history.insert(
        1,
        native(r#"{"type":"openai-chat:acme","call":{"type":"acme","id":"1"}}"#),
    );
    let (mended, kinds) = mend(&history, &RepairRules::for_format(Format::OpenAiChat));
    assert_eq!((mended, kinds), (history.clone(), vec![]));
    let (mended, kinds) = mend(&history, &RepairRules::for_format(Format::Anthropic));
    assert_eq!((mended.len(), kinds), (3, vec![OrphanOutput]));
}

#[test]
fn call_ids_fit_the_target() {
    let long = "x".repeat(80);
    for (format, id, fits) in [
        (Format::Anthropic, "call:1", false),
        (Format::Anthropic, "", false),
        (Format::Anthropic, "ab_-1", true),
        (Format::OpenAiChat, "call:1", true),
        (
            Format::OpenAiChat,
            "0123456789012345678901234567890123456789",
            true,
        ),
        (
            Format::OpenAiChat,
            "01234567890123456789012345678901234567890",
            false,
        ),
        (Format::Gemini, long.as_str(), false),
        (Format::Items, long.as_str(), true),
    ] {
        let rules = RepairRules {
            user_first: false,
            user_last: false,
            ..RepairRules::for_format(format)
        };
        let history: Vec<Item> = vec![
            FunctionCall::new(id, "f", "{}").into(),
            FunctionCallOutput::new(id, Output::Text("x".into())).into(),
        ];
        let (mended, kinds) = mend(&history, &rules);
        assert_eq!(kinds.is_empty(), fits, "{format} {id:?}");
        let (Item::FunctionCall(call), Item::FunctionCallOutput(output)) = (&mended[0], &mended[1])
        else {
            panic!("{mended:?}");
        };
        assert_eq!(call.call_id, output.call_id);
        assert!(
            rules.call_ids.accepts(&call.call_id),
            "{format} {:?}",
            call.call_id
        );
    }
}

#[test]
fn item_ids_stand_once_where_the_target_wants_that() {
    let thought = || Reasoning {
        id: Some("rs_1".into()),
        ..Reasoning::default()
    };
    let said = || Message {
        id: Some("msg_1".into()),
        ..Message::text(Role::Assistant, "a")
    };
    let history: Vec<Item> = vec![
        thought().into(),
        said().into(),
        thought().into(),
        said().into(),
    ];
    let (mended, kinds) = mend(&history, &RepairRules::for_format(Format::OpenAiResponses));
    assert_eq!(kinds, [ItemId, ItemId]);
    let ids: Vec<Option<&str>> = mended.iter().map(Item::id).collect();
    assert_eq!(ids, [Some("rs_1"), Some("msg_1"), None]);
    let (mended, kinds) = mend(&history, &RepairRules::for_format(Format::OpenAiChat));
    assert!(kinds.is_empty());
    assert_eq!(mended, history);
}

#[test]
fn ends_are_the_users_where_the_target_wants_that() {
    let rules = RepairRules::for_format(Format::Anthropic);
    check_with(&rules, "u", "u", &[]);
    check_with(&rules, "u a u", "u a u", &[]);
    check_with(&rules, "u c1 o1", "u c1 o1", &[]);
    check_with(&rules, "a u", "^ a u", &[NoBeginning]);
    check_with(&rules, "u a", "u a $", &[NoEnd]);
    check_with(&rules, "u a k", "u a k $", &[NoEnd]);
    check_with(&rules, "", "^", &[NoBeginning]);
    check_with(&rules, "e a", "^ a $", &[EmptyMessage, NoBeginning, NoEnd]);
    check_with(&rules, "s u", "^ s u", &[NoBeginning]);
    check_with(&rules, "k u", "k u", &[]);
}

#[test]
fn what_the_target_leaves_out_is_no_end() {
    let rules = RepairRules::for_format(Format::Anthropic);
    check_with(&rules, "w s u", "^ s u", &[EmptyMessage, NoBeginning]);
    check_with(&rules, "w a u", "^ a u", &[EmptyMessage, NoBeginning]);
    check_with(&rules, "h a u", "^ a u", &[EmptyMessage, NoBeginning]);
    check_with(&rules, "u a w", "u a $", &[EmptyMessage, NoEnd]);
    check_with(&rules, "u W", "u", &[EmptyMessage]);
    check_with(&rules, "X a u", "^ X a u", &[NoBeginning]);
    check_with(&rules, "u a X", "u a X $", &[NoEnd]);
    check_with(&rules, "x u", "x u", &[]);
    check_with(&rules, "u x", "u x", &[]);
    check_with(&rules, "u a t1 T1", "u a c1 o1", &[CustomCall]);
    check_with(&rules, "w", "^", &[EmptyMessage, NoBeginning]);
    // Gemini writes white space.
    let rules = RepairRules::for_format(Format::Gemini);
    check_with(&rules, "w a w", "u a u", &[]);
    check_with(&rules, "u a X", "u a X $", &[NoEnd]);
}

/// Where a target knows functions only, a custom tool's call is one, and what holds for functions holds for it.
#[test]
fn custom_calls_are_functions_where_only_those_are_known() {
    for target in Format::PROVIDERS {
        let rules = RepairRules {
            user_last: false,
            user_first: false,
            ..RepairRules::for_format(target)
        };
        let is_known = matches!(target, Format::OpenAiChat | Format::OpenAiResponses);
        if is_known {
            check_with(&rules, "u a t1 T1 a", "u a t1 T1 a", &[]);
            check_with(&rules, "u t1 u", "u u", &[UnansweredCall]);
            continue;
        }
        check_with(&rules, "u a t1 T1 a", "u a c1 o1 a", &[CustomCall]);
        check_with(&rules, "u t1 c2 T1 o2 a", "u c1 c2 o1 o2 a", &[CustomCall]);
        let issues = [CustomCall, UnansweredCall];
        check_with(&rules, "u t1 u", "u c1 p1 u", &issues);
        check_with(&rules, "u T1", "u", &[OrphanOutput]);
        // Items that were not changed are borrowed from the input.
        let history = items("u t1 T1 a");
        let mended = repair(&history.iter().collect::<Vec<_>>(), &rules);
        let borrowed = mended.items.iter().map(|entry| match &entry.item {
            std::borrow::Cow::Borrowed(item) => {
                std::ptr::eq(*item, &history[entry.source.unwrap()])
            }
            std::borrow::Cow::Owned(_) => false,
        });
        assert_eq!(borrowed.collect::<Vec<_>>(), [true, false, false, true]);
    }
}

/// A function's call under a type that nobody knows is one for every provider, with its output.
#[test]
fn calls_of_unknown_types_are_functions_everywhere() {
    let history = [
        r#"{"type":"message","role":"user","content":"q"}"#,
        r#"{"type":"tool_call","id":"x","call_id":"A","name":"f","arguments":"{}","at":1}"#,
        r#"{"type":"tool_result","call_id":"A","output":"y","at":2}"#,
        r#"{"type":"message","role":"user","content":"n"}"#,
    ];
    let history: Vec<Item> = history.map(|text| Item::parse(text).unwrap()).into();
    for target in Format::PROVIDERS {
        let mended = repair(
            &history.iter().collect::<Vec<_>>(),
            &RepairRules::for_format(target),
        );
        let kinds: Vec<IssueKind> = mended.issues.iter().map(|issue| issue.kind).collect();
        assert_eq!(kinds, [CustomCall], "{target}");
        let items = mended.into_items();
        let expected = [
            FunctionCall::new("A", "f", "{}").into(),
            FunctionCallOutput::new("A", Output::Text("y".to_owned())).into(),
        ];
        assert_eq!(items[1..3], expected, "{target}");
    }
}

/// What a document of the format may hold but its schema refuses is left out of what is sent, and only there.
#[test]
fn nulls_that_the_schema_refuses_are_not_sent() {
    let document = r#"{"model":"m","input":[{"role":"user","content":"q"},
        {"type":"reasoning","id":"rs_1","summary":null,"content":null,"encrypted_content":"E"},
        {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]},
        {"role":"user","content":"n"}]}"#;
    let format = Format::OpenAiResponses;
    let mut transcript = lift(format, document).unwrap().transcript;
    let list: Vec<&Item> = transcript.items.iter().collect();
    let mended = repair(&list, &RepairRules::for_format(format));
    assert!(mended.issues.is_empty(), "{:?}", mended.issues);
    transcript.items = mended.into_items();
    let request = contexture_wire::DocumentKind::Request;
    let json = contexture_wire::lower(&Dialect::of(format), request, &transcript).json;
    let sent: serde_json::Value = serde_json::from_str(&json).unwrap();
    let findings = data::request_validator(format.as_str()).validation_errors(&sent);
    assert!(findings.is_empty(), "{findings:#?}");
    let thought = serde_json::json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"});
    assert_eq!(sent["input"][1], thought);
    // An item that did not come through the format is not sent with them either.
    let item = Item::parse(
        r#"{"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":"E"}"#,
    );
    let run = contexture_wire::RoleRun {
        side: Side::Model,
        start: 0,
        follows_user: false,
        entries: &[contexture_wire::PairedItem::new(item.as_ref().unwrap())],
    };
    let json = lower_run(&Dialect::of(format), &run).json;
    let sent: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(sent, thought);
}

#[test]
fn thoughts_lead_to_what_the_target_is_told() {
    let responses = RepairRules::for_format(Format::OpenAiResponses);
    check_with(&responses, "u r x", "u x", &[DanglingReasoning]);
    check_with(&responses, "u r x k u", "u x k u", &[DanglingReasoning]);
    check_with(&responses, "u r x a", "u r x a", &[]);
    check_with(&responses, "u r x r a", "u r x r a", &[]);
    check_with(&responses, "u r g", "u r g", &[]);
    let chat = RepairRules::for_format(Format::OpenAiChat);
    check_with(&chat, "u r g", "u g", &[DanglingReasoning]);
    check("u r x", "u r x", &[]);
}

#[test]
fn made_up_outputs_have_ids_of_their_own() {
    let history = items("c1 u c1 u");
    let (mended, _) = mend(&history, &RepairRules::for_format(Format::OpenAiResponses));
    let ids: BTreeSet<&str> = mended.iter().filter_map(Item::id).collect();
    assert_eq!(ids.len(), 2);
    let (again, _) = mend(&history, &RepairRules::for_format(Format::OpenAiResponses));
    assert_eq!(mended, again);
}

/// What a provider would refuse, found independently of how repair works.
fn faults(repaired: &Repaired<'_>, rules: &RepairRules, format: Format) -> Vec<String> {
    let mut faults = Vec::new();
    let entries = repaired.paired_items();
    let mut ids = BTreeSet::new();
    let runs = role_runs(&entries, format);
    for (at, run) in runs.iter().enumerate() {
        let calls: Vec<&str> = run
            .entries
            .iter()
            .filter(|e| matches!(e.item, Item::FunctionCall(_)))
            .map(|e| e.call_id())
            .collect();
        for id in &calls {
            if !ids.insert(*id) || !rules.call_ids.accepts(id) {
                faults.push(format!("id {id:?}"));
            }
        }
        let outputs = |run: &contexture_wire::RoleRun<'_, '_>| -> Vec<String> {
            let speaking = run
                .entries
                .iter()
                .filter(|e| contexture_wire::side(e.item, format).is_some());
            speaking
                .filter(|e| !matches!(e.item, Item::Extension(_)))
                .take_while(|e| matches!(e.item, Item::FunctionCallOutput(_)))
                .map(|e| e.call_id().to_owned())
                .collect()
        };
        let total = run
            .entries
            .iter()
            .filter(|e| matches!(e.item, Item::FunctionCallOutput(_)))
            .count();
        match run.side {
            Side::Model => {
                let next = runs.get(at + 1).map(outputs).unwrap_or_default();
                if next != calls {
                    faults.push(format!("calls {calls:?} outputs {next:?}"));
                }
                let last = run
                    .entries
                    .iter()
                    .rfind(|e| contexture_wire::side(e.item, format).is_some());
                if matches!(last.map(|e| e.item), Some(Item::Reasoning(_))) {
                    faults.push("ends with a thought".into());
                }
            }
            Side::User if outputs(run).len() != total => {
                faults.push("output behind a message".into())
            }
            Side::User if at == 0 && total > 0 => faults.push("outputs first".into()),
            Side::User => {}
        }
        let chunk = lower_run(&Dialect::of(format), run);
        if chunk.facts.calls.len() > calls.len() + run.entries.len() {
            faults.push("more calls than items".into());
        }
    }
    // Judged by what is written. A host's message is not the user's where the model knows it as such.
    let dialect = Dialect {
        mid_system: true,
        ..Dialect::of(format)
    };
    let chunks: Vec<String> = runs
        .iter()
        .map(|run| lower_run(&dialect, run).json)
        .filter(|json| !json.is_empty())
        .collect();
    let written: Vec<serde_json::Value> =
        serde_json::from_str(&format!("[{}]", chunks.join(","))).unwrap();
    let sides: Vec<Option<&str>> = written
        .iter()
        .map(|element| element["role"].as_str())
        .collect();
    let model = |role: &Option<&str>| matches!(role, Some("assistant" | "model"));
    if rules.user_first && sides.first() != Some(&Some("user"))
        || rules.user_last && sides.last().is_none_or(model)
    {
        faults.push(format!("ends {sides:?}"));
    }
    if format == Format::OpenAiResponses {
        let thought = |element: &serde_json::Value| element["type"] == "reasoning";
        for (at, _) in written.iter().enumerate().filter(|(_, one)| thought(one)) {
            let led_to = written.iter().skip(at).find(|one| !thought(one));
            let models = led_to.is_some_and(|one| {
                one["role"] == "assistant"
                    || one["role"].is_null() && one["type"] != "function_call_output"
            });
            if !models {
                faults.push(format!("thought {at} led to nothing"));
            }
        }
    }
    faults
}

/// What OpenAI refuses in an array of messages.
fn refused(messages: &[serde_json::Value]) -> Option<String> {
    let mut owed: Vec<String> = Vec::new();
    for message in messages {
        match message["tool_call_id"].as_str() {
            Some(id) => match owed.iter().position(|owed| owed == id) {
                Some(at) => drop(owed.remove(at)),
                None => return Some(format!("output {id} without a call before it")),
            },
            None if !owed.is_empty() => {
                return Some(format!("calls {owed:?} without outputs behind them"));
            }
            None => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            owed.push(call["id"].as_str().unwrap().to_owned());
        }
    }
    (!owed.is_empty()).then(|| format!("calls {owed:?} without outputs"))
}

fn chat_messages(repaired: &Repaired<'_>) -> Vec<serde_json::Value> {
    let entries = repaired.paired_items();
    let dialect = Dialect::of(Format::OpenAiChat);
    let chunks: Vec<String> = role_runs(&entries, Format::OpenAiChat)
        .iter()
        .map(|run| lower_run(&dialect, run).json)
        .filter(|json| !json.is_empty())
        .collect();
    serde_json::from_str(&format!("[{}]", chunks.join(","))).unwrap()
}

#[test]
fn outputs_stand_behind_the_message_of_their_calls() {
    let text = r#"[{"role":"user","content":"u"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"assistant","content":"too early"},
        {"role":"tool","tool_call_id":"1","content":"x"}]"#;
    let lifted = lift(Format::OpenAiChat, text).unwrap();
    let refs: Vec<&Item> = lifted.transcript.items.iter().collect();
    let repaired = repair(&refs, &RepairRules::for_format(Format::OpenAiChat));
    assert_eq!(
        repaired
            .issues
            .iter()
            .map(|issue| issue.kind)
            .collect::<Vec<_>>(),
        [MisplacedOutput]
    );
    let messages = chat_messages(&repaired);
    assert_eq!(refused(&messages), None);
    assert_eq!(
        messages
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["user", "assistant", "tool", "assistant"]
    );
}

#[test]
fn recorded_histories_need_little() {
    for format in Format::PROVIDERS {
        let mut issues: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        let exchanges = data::exchanges(format.as_str());
        for exchange in &exchanges {
            let lifted = lift(format, exchange.request.get()).unwrap();
            let refs: Vec<&Item> = lifted.transcript.items.iter().collect();
            let rules = RepairRules::for_format(format);
            let repaired = repair(&refs, &rules);
            assert!(
                faults(&repaired, &rules, format).is_empty(),
                "{}",
                exchange.file
            );
            for issue in &repaired.issues {
                *issues.entry(issue.kind.as_str()).or_default() += 1;
            }
        }
        println!(
            "{format}: {} recorded requests, issues {issues:?}",
            exchanges.len()
        );
    }
}

fn history() -> impl Strategy<Value = Vec<String>> {
    let id = prop_oneof![
        "[12]",
        "[1-5]",
        Just(String::new()),
        Just("a:b".to_owned()),
        "x{60,70}"
    ];
    let kind = prop_oneof![
        3 => Just("c"), 3 => Just("o"), 1 => Just("?c"), 2 => Just("r"), 1 => Just("?r"), 2 => Just("u"), 2 => Just("a"),
        1 => Just("s"), 1 => Just("e"), 1 => Just("k"), 1 => Just("t"), 1 => Just("T"),
        1 => Just("w"), 1 => Just("W"), 1 => Just("h"), 1 => Just("x"), 1 => Just("X"), 1 => Just("g"),
    ];
    let word = (kind, id).prop_map(|(kind, id)| match kind {
        "c" | "o" | "?c" | "t" | "T" => format!("{kind}{id}"),
        kind => kind.to_owned(),
    });
    prop::collection::vec(word, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn repaired_histories_are_legal_and_stay(words in history(), format in 0..Format::ALL.len(), strip in any::<bool>()) {
        let format = Format::ALL[format];
        let mut rules = RepairRules::for_format(format);
        if strip {
            rules.unanswered = Unanswered::Strip;
        }
        let history: Vec<Item> = words.iter().enumerate().map(|(at, word)| item(word, at)).collect();
        let refs: Vec<&Item> = history.iter().collect();
        let repaired = repair(&refs, &rules);
        let faults = faults(&repaired, &rules, format);
        prop_assert!(faults.is_empty(), "{words:?}: {faults:?}");
        if format == Format::OpenAiChat {
            let messages = chat_messages(&repaired);
            prop_assert_eq!(refused(&messages), None, "{:?}", words);
        }
        let clean = repaired.issues.is_empty();
        let once = repaired.into_items();
        prop_assert!(!clean || once == history, "changed without an issue: {words:?}");
        let refs: Vec<&Item> = once.iter().collect();
        let again = repair(&refs, &rules);
        prop_assert!(again.issues.is_empty(), "{words:?}: {:?}", again.issues);
        prop_assert_eq!(&again.into_items(), &once);
    }
}

#[test]
fn long_histories_are_mended_in_linear_time() {
    // Each half is a worst case of a naive search: one step of many calls, many repeats of one id.
    let mut history = Vec::new();
    for at in 0..20_000 {
        history.push(item(&format!("c{at}"), at));
    }
    for at in (0..20_000).rev() {
        history.push(item(&format!("o{at}"), at));
    }
    for at in 0..20_000 {
        history.push(item("c1", at));
        history.push(item("o1", at));
    }
    let (mended, kinds) = mend(&history, &RepairRules::for_format(Format::Anthropic));
    assert_eq!(mended.len(), history.len() + 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == CallId).count(), 20_000);
}
