//! What a run tells, as clients of protocols read it: whatever happens, what begins ends, and ids match.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use contexture_ir::{FunctionCall, FunctionCallOutput, NodeId, Output, ResponseId, RunId, Usage};
use contexture_runs::{
    AgUi, OpenResponses, ProtocolEvent, RunEvent, RunEventKind, RunStatus, RunUsage,
    run_turn_with_text,
};
use contexture_wire::{PieceKind, StreamEvent};
use proptest::prelude::*;
use serde_json::Value;

use crate::test_support::{agent, calling, chat, model, saying, tools};

const RUN: RunId = RunId::from_bytes([1; 16]);
const CHILD: RunId = RunId::from_bytes([2; 16]);

fn value(sent: &ProtocolEvent) -> Value {
    let value: Value = sent.json.parse_as().unwrap();
    assert_eq!(value["type"], sent.name);
    value
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Checks a whole run as a client of AG-UI does.
fn check_ag_ui(sent: &[ProtocolEvent]) {
    let mut open: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut messages = BTreeSet::new();
    for (index, event) in sent.iter().enumerate() {
        let members = value(event);
        assert_eq!(index == 0, event.name == "RUN_STARTED");
        let ends = matches!(event.name, "RUN_FINISHED" | "RUN_ERROR");
        assert_eq!(index + 1 == sent.len(), ends);
        let id = match event.name {
            name if name.starts_with("TOOL_CALL") => text(&members, "toolCallId"),
            _ => text(&members, "messageId"),
        };
        if let Some(of) = event.name.strip_suffix("_START") {
            assert!(open.insert((of, id.clone())), "{members} began twice");
            assert!(of == "TOOL_CALL" || messages.insert((of, id)));
        } else if let Some(of) = event.name.strip_suffix("_END") {
            assert!(open.remove(&(of, id)), "{members} had not begun");
        } else if let Some(of) = ["_CONTENT", "_ARGS"]
            .iter()
            .find_map(|end| event.name.strip_suffix(end))
        {
            assert!(open.contains(&(of, id)), "{members} is not open");
        }
    }
    assert!(open.is_empty(), "{open:?} never ended");
}

/// Numbers without gaps; deltas of items that began, whose end has all that was said.
fn check_open_responses(sent: &[ProtocolEvent]) {
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for (index, event) in sent.iter().enumerate() {
        let members = value(event);
        assert_eq!(members["sequence_number"], index);
        match event.name {
            "response.output_item.added" => {
                let id = text(&members["item"], "id");
                assert!(said.insert(id, String::new()).is_none(), "{members}");
            }
            "response.output_text.delta" => {
                let id = text(&members, "item_id");
                said.get_mut(&id)
                    .unwrap()
                    .push_str(&text(&members, "delta"));
            }
            "response.output_item.done" => {
                let item = &members["item"];
                let said = &said[&text(item, "id")];
                if item["type"] == "message" {
                    assert_eq!(text(&item["content"][0], "text"), *said);
                }
            }
            name => assert!(name.starts_with("response.") || name.starts_with("contexture:")),
        }
    }
}

fn delta() -> impl Strategy<Value = RunEventKind> {
    let piece = 0..3_usize;
    let word = "[ab]{1,3}";
    let call = (
        prop::option::of("c[12]"),
        prop::option::of(Just("add".to_owned())),
    );
    let kind = prop_oneof![
        Just(PieceKind::Message),
        Just(PieceKind::Reasoning),
        call.prop_map(|(id, name)| PieceKind::Call { id, name }),
        Just(PieceKind::Other("web_search_call".to_owned())),
    ];
    let event = prop_oneof![
        Just(StreamEvent::Started {
            id: None,
            model: Some("m".to_owned()),
        }),
        (piece.clone(), kind).prop_map(|(piece, kind)| StreamEvent::ItemAdded { piece, kind }),
        (piece.clone(), word).prop_map(|(piece, delta)| StreamEvent::TextDelta { piece, delta }),
        (piece.clone(), word)
            .prop_map(|(piece, delta)| StreamEvent::ReasoningDelta { piece, delta }),
        (piece.clone(), word)
            .prop_map(|(piece, delta)| StreamEvent::ArgumentsDelta { piece, delta }),
        piece.prop_map(|piece| StreamEvent::ItemDone { piece }),
        Just(StreamEvent::Usage(Usage::default())),
        Just(StreamEvent::Finished { finish: None }),
    ];
    event.prop_map(RunEventKind::Delta)
}

fn any_event() -> impl Strategy<Value = RunEventKind> {
    let node = NodeId::from_bytes([3; 16]);
    let started = "c[12]".prop_map(move |id| RunEventKind::ToolStarted {
        node,
        call: FunctionCall::new(&id, "add", "{}"),
    });
    let done = "c[12]".prop_map(move |id| RunEventKind::ToolFinished {
        node,
        output: FunctionCallOutput::new(&id, Output::Text("3".to_owned())),
    });
    prop_oneof![
        8 => delta(),
        1 => Just(RunEventKind::ModelStarted { model: "m".to_owned(), tokens: 1 }),
        1 => Just(RunEventKind::Retrying { attempt: 1, reason: "busy".to_owned() }),
        1 => Just(RunEventKind::ResponseStored {
            response: ResponseId::from_bytes([4; 16]),
            usage: RunUsage::default(),
        }),
        1 => started,
        1 => done,
    ]
}

fn ended(status: RunStatus) -> RunEventKind {
    RunEventKind::Ended {
        status,
        reason: None,
        usage: RunUsage::default(),
    }
}

fn end() -> impl Strategy<Value = RunEventKind> {
    prop_oneof![
        Just(ended(RunStatus::Completed)),
        Just(ended(RunStatus::Aborted)),
        Just(ended(RunStatus::Failed)),
        Just(RunEventKind::Waiting {
            calls: vec![NodeId::from_bytes([3; 16])]
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_a_run_tells_what_begins_ends(
        before in prop::collection::vec(any_event(), 0..20),
        beside in prop::collection::vec((any::<bool>(), any_event()), 0..40),
        child_ends in prop::option::of(end()),
        end in end(),
    ) {
        let of = |run, kind| RunEvent { run, step: 1, kind };
        let mut events: Vec<RunEvent> = before.into_iter().map(|kind| of(RUN, kind)).collect();
        events.push(of(RUN, RunEventKind::Spawned { child: CHILD }));
        for (child, kind) in beside {
            events.push(of(if child { CHILD } else { RUN }, kind));
        }
        events.extend(child_ends.map(|end| of(CHILD, end)));
        events.push(of(RUN, end));
        let mut ag_ui = AgUi::new("c".parse().unwrap(), RUN);
        let sent: Vec<ProtocolEvent> = events.iter().flat_map(|event| ag_ui.map_event(event)).collect();
        check_ag_ui(&sent);
        prop_assert!(ag_ui.error_event("again").is_empty());
        let mut cut = AgUi::new("c".parse().unwrap(), RUN);
        let (_, whole) = events.split_last().unwrap();
        let mut sent: Vec<ProtocolEvent> = whole.iter().flat_map(|event| cut.map_event(event)).collect();
        sent.extend(cut.error_event("the store failed"));
        check_ag_ui(&sent);
        let mut numbered = OpenResponses::new();
        for event in &events {
            numbered.map_event(event);
        }
    }
}

#[tokio::test]
async fn a_run_is_told_in_both_words() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("c1", "add", r#"{"a":1,"b":2}"#), ("c2", "forbidden", "{}")]),
        saying("Three."),
    ]);
    let seen: Arc<Mutex<Vec<RunEvent>>> = Arc::default();
    let watch = Arc::clone(&seen);
    let agent = agent(&model)
        .with_tools(tools(&ran))
        .unwrap()
        .with_observer(move |event: &RunEvent| watch.lock().unwrap().push(event.clone()));
    let turn = run_turn_with_text(&chat, &agent, "Add.").await.unwrap();
    let seen = seen.lock().unwrap();

    let mut ag_ui = AgUi::new(chat.id().clone(), turn.run);
    let sent: Vec<ProtocolEvent> = seen
        .iter()
        .flat_map(|event| ag_ui.map_event(event))
        .collect();
    check_ag_ui(&sent);
    let names: Vec<&str> = sent.iter().map(|sent| sent.name).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "CUSTOM").collect();
    let call = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"];
    let wanted = [
        &["RUN_STARTED"][..],
        &call,
        &call,
        &["TOOL_CALL_RESULT", "TOOL_CALL_RESULT"],
        &[
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
        ],
        &["RUN_FINISHED"],
    ];
    assert_eq!(names, wanted.concat());
    let result = sent.iter().find(|sent| sent.name == "TOOL_CALL_RESULT");
    let result = value(result.unwrap());
    assert_eq!(
        (text(&result, "toolCallId"), text(&result, "content")),
        ("c1".to_owned(), "3".to_owned())
    );

    let mut open = OpenResponses::new();
    let sent: Vec<ProtocolEvent> = seen
        .iter()
        .flat_map(|event| open.map_event(event))
        .collect();
    check_open_responses(&sent);
    let count = |name| sent.iter().filter(|sent| sent.name == name).count();
    assert_eq!(count("response.created"), 2);
    assert_eq!(count("response.function_call_arguments.delta"), 2);
    assert_eq!(count("response.output_text.delta"), 1);
    assert_eq!(count("response.completed"), 2);
    assert_eq!(count("contexture:run.tool_done"), 2);
    let last = value(sent.last().unwrap());
    assert_eq!(
        (text(&last, "type"), text(&last, "status")),
        ("contexture:run.ended".to_owned(), "completed".to_owned())
    );
}
