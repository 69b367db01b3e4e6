//! `memory`: the tools, what is shown, how long, and who has a say.

use std::sync::{Arc, Mutex};

use contexture_compile::{Band, Budget, Placement, Stability};
use contexture_layers::builtin::memory::{Memory, NoteChange, NoteEntry, NoteTtl};
use contexture_layers::{LayerId, StateScope};
use serde_json::{Value, json};

use crate::layer_fixture::{HOSTILE, LayerFixture, quoted};

/// 22 November 2026, in the middle of the day.
const NOON: i64 = 1_795_348_800_000;

async fn desk(memory: Memory) -> LayerFixture {
    let mut desk = LayerFixture::with(memory).await;
    desk.context.now_ms = NOON;
    desk
}

async fn keys(desk: &LayerFixture) -> Vec<String> {
    let shown = desk.shown().await;
    let parts = shown.split("<key>").skip(1);
    let keys = parts.filter_map(|part| part.split("</key>").next());
    keys.map(str::to_owned).collect()
}

#[tokio::test]
async fn notes_are_made_changed_and_deleted_by_the_model() {
    let mut desk = desk(Memory::new()).await;
    assert!(desk.said().await.is_empty());
    let note = r#"{"key":"language","value":"Portuguese","description":"to write in"}"#;
    let made = desk.call("create_memory", note).await.unwrap();
    assert_eq!(made, r#"{"key":"language","done":"created"}"#);
    let made = desk.call("create_memory", note).await.unwrap();
    assert_eq!(made, r#"{"key":"language","done":"unchanged"}"#);
    let expected = "<memory>\n  <key>language</key>\n  <description>to write in</description>\n  \
                    <value>Portuguese</value>\n  <updated>2026-11-22</updated>\n</memory>";
    let shown = desk.shown().await;
    assert!(
        shown.starts_with("<hint>") && shown.ends_with(expected),
        "{shown}"
    );

    let update = r#"{"key":"language","value":"English"}"#;
    let made = desk.call("update_memory", update).await.unwrap();
    assert_eq!(made, r#"{"key":"language","done":"updated"}"#);
    let shown = desk.shown().await;
    assert!(shown.contains("to write in"), "{shown}");
    let was = "<value>English</value>\n  <was>Portuguese (until 2026-11-22)</was>";
    assert!(shown.contains(was), "{shown}");
    let missing = r#"{"key":"tone","value":"dry"}"#;
    let refused = desk.call("update_memory", missing).await.unwrap_err();
    assert_eq!(
        refused,
        "there is no note \"tone\": create it, with a value"
    );

    let deleted = desk.call("delete_memory", r#"{"key":"language"}"#).await;
    assert_eq!(deleted.unwrap(), r#"{"key":"language","deleted":true}"#);
    let deleted = desk.call("delete_memory", r#"{"key":"language"}"#).await;
    assert_eq!(deleted.unwrap(), r#"{"key":"language","deleted":false}"#);
    assert!(desk.said().await.is_empty());
}

#[tokio::test]
async fn the_news_say_what_changed() {
    let mut desk = desk(Memory::new()).await;
    let create = |value: &str, ttl: &str| format!(r#"{{"key":"k","value":"{value}","ttl":{ttl}}}"#);
    desk.call("create_memory", &create("one", "null"))
        .await
        .unwrap();
    desk.call("create_memory", &create("two", "1"))
        .await
        .unwrap();
    desk.call("create_memory", &create("two", "1"))
        .await
        .unwrap();
    assert_eq!(
        desk.told(),
        [
            r#"memory:changed {"type":"set","key":"k","value":"one","old":null}"#,
            r#"memory:changed {"type":"set","key":"k","value":"two","old":"one"}"#,
        ]
    );
    desk.shown().await;
    assert_eq!(desk.told(), [r#"memory:injected {"keys":["k"]}"#]);
    desk.answered().await;
    assert_eq!(
        desk.told(),
        [
            r#"memory:expired {"key":"k","value":"two"}"#,
            r#"memory:changed {"type":"expire","key":"k","old":"two"}"#,
        ]
    );
    desk.shown().await;
    assert!(desk.told().is_empty());
    desk.call("create_memory", &create("three", "null"))
        .await
        .unwrap();
    desk.call("delete_memory", r#"{"key":"k"}"#).await.unwrap();
    let last = desk.told().pop();
    let expected = r#"memory:changed {"type":"delete","key":"k","old":"three"}"#;
    assert_eq!(last.as_deref(), Some(expected));
}

#[tokio::test]
async fn a_note_for_n_answers_is_shown_in_n_calls_in_every_scope() {
    for scope in [StateScope::Path, StateScope::Resource, StateScope::Global] {
        for n in 1..4 {
            let mut desk = desk(Memory::new().with_scope(scope)).await;
            desk.context.responses = 17;
            let note = format!(r#"{{"key":"k","value":"v","ttl":{n}}}"#);
            desk.call("create_memory", &note).await.unwrap();
            let mut shown = 0;
            for _ in 0..8 {
                shown += keys(&desk).await.len();
                // What people and tools say is no answer.
                desk.observed(None).await;
                desk.answered().await;
            }
            assert_eq!(shown, n, "{scope:?}");
            assert_eq!(
                desk.data(),
                r#"{"notes":{}}"#,
                "removed, and nothing is counted"
            );
        }
    }
}

#[tokio::test]
async fn answers_are_counted_only_while_a_note_waits_for_them() {
    let mut desk = desk(Memory::new()).await;
    desk.call("create_memory", r#"{"key":"k","value":"v"}"#)
        .await
        .unwrap();
    let before = desk.data();
    desk.answered().await;
    assert_eq!(desk.data(), before);
    desk.call("update_memory", r#"{"key":"k","ttl":5}"#)
        .await
        .unwrap();
    desk.answered().await;
    desk.answered().await;
    assert!(desk.data().contains(r#""answers":2"#));
    desk.call("update_memory", r#"{"key":"k","ttl":null}"#)
        .await
        .unwrap();
    assert!(!desk.data().contains("answers") && !desk.data().contains("expires"));
    desk.states.mark_committed();
    desk.answered().await;
    assert!(desk.layers.changed_states(&desk.states).is_empty());
}

#[tokio::test]
async fn time_expires_a_note_by_the_clock_of_the_call() {
    let mut desk = desk(Memory::new().with_ttl(NoteTtl::Ms(1000))).await;
    desk.call("create_memory", r#"{"key":"short","value":"v"}"#)
        .await
        .unwrap();
    desk.call("create_memory", r#"{"key":"long","value":"v","ttl":null}"#)
        .await
        .unwrap();
    desk.context.now_ms = NOON + 999;
    assert_eq!(keys(&desk).await, ["long", "short"]);
    desk.context.now_ms = NOON + 1000;
    assert_eq!(
        keys(&desk).await,
        ["long"],
        "not shown, though nothing removed it yet"
    );
    assert!(desk.data().contains("short"));
    desk.observed(None).await;
    assert!(!desk.data().contains("short"));
}

#[tokio::test]
async fn without_a_word_on_it_the_layers_time_to_live_counts_anew() {
    let mut desk = desk(Memory::new().with_ttl(NoteTtl::Responses(2))).await;
    desk.call("create_memory", r#"{"key":"k","value":"v"}"#)
        .await
        .unwrap();
    desk.answered().await;
    desk.call("update_memory", r#"{"key":"k","value":"w"}"#)
        .await
        .unwrap();
    desk.answered().await;
    assert_eq!(keys(&desk).await, ["k"]);
    desk.answered().await;
    assert_eq!(keys(&desk).await, [""; 0]);
}

#[tokio::test]
async fn allowed_keys_are_in_the_schemas_and_in_force() {
    let mut desk = desk(Memory::new().with_keys(["tone", "language"])).await;
    for (_, function) in desk.layers.functions() {
        let schema = function.input.get();
        assert!(schema.contains(r#""enum":["language","tone"]"#), "{schema}");
    }
    desk.call("create_memory", r#"{"key":"tone","value":"dry"}"#)
        .await
        .unwrap();
    for tool in ["create_memory", "update_memory"] {
        let refused = desk.call(tool, r#"{"key":"name","value":"x"}"#).await;
        assert!(refused.unwrap_err().contains("language"), "{tool}");
    }
    let refused = desk.call("delete_memory", r#"{"key":"name"}"#).await;
    assert!(refused.unwrap_err().contains("language"));

    // Whoever gets past the schema gets no further.
    let memory = Memory::new().with_keys(["tone"]);
    let notes = &mut <_>::default();
    let raw = contexture_ir::Raw::parse(r#"{"key":"name","value":"x"}"#).unwrap();
    let called =
        contexture_layers::Layer::call_function(&memory, notes, "create", &raw, &desk.context);
    let refused = called.await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "\"name\" is no key that may be used; these may: tone"
    );
}

#[tokio::test]
async fn schemas_do_not_change_with_the_notes() {
    let mut desk = desk(Memory::new()).await;
    let tools = desk.layers.tool_definitions();
    assert_eq!(tools.len(), 3);
    desk.call("create_memory", r#"{"key":"k","value":"v"}"#)
        .await
        .unwrap();
    assert_eq!(desk.layers.tool_definitions(), tools);
    for (arguments, reason) in [
        (r#"{"key":"k"}"#, "value"),
        (r#"{"key":1,"value":"v"}"#, "/key"),
        (r#"{"key":"k","value":"v","ttl":0}"#, "/ttl"),
        (r#"{"key":"k","value":"v","importance":101}"#, "/importance"),
        (r#"{"key":"k","value":"v","more":1}"#, "more"),
        (r#"{"key":"","value":"v"}"#, "the key is empty"),
    ] {
        let refused = desk.call("create_memory", arguments).await.unwrap_err();
        assert!(refused.contains(reason), "{arguments}: {refused}");
    }
}

#[tokio::test]
async fn most_important_notes_come_first_and_survive_budget() {
    let memory = Memory::new().with_spec(|spec| spec.budget = Budget::at_most(150));
    let mut desk = desk(memory).await;
    for (key, importance) in [("a", 1), ("b", 90), ("c", 50)] {
        let value = format!("{key} is noted {}", "at length ".repeat(25));
        let note = json!({"key": key, "value": value, "importance": importance});
        desk.call("create_memory", &note.to_string()).await.unwrap();
    }
    desk.call("create_memory", r#"{"key":"0","value":"v"}"#)
        .await
        .unwrap();
    assert_eq!(keys(&desk).await, ["b", "c", "a", "0"]);
    let payload = desk.compiled().await.unwrap().payload.to_json();
    assert!(payload.contains("b is noted"), "{payload}");
    assert!(!payload.contains("a is noted"), "{payload}");
}

#[tokio::test]
async fn the_program_selects_what_is_shown() {
    let memory = Memory::new().with_filter(|mut there, call| {
        there.retain(|NoteEntry { note, .. }| note.value.contains(call.query) && note.updates < 2);
        there.truncate(1);
        there
    });
    let mut desk = desk(memory).await;
    for key in ["a", "b"] {
        let note = format!(r#"{{"key":"{key}","value":"v"}}"#);
        desk.call("create_memory", &note).await.unwrap();
    }
    assert_eq!(keys(&desk).await, ["a"]);
    assert_eq!(
        desk.told().pop().unwrap(),
        r#"memory:injected {"keys":["a"]}"#
    );
    desk.call("update_memory", r#"{"key":"a","value":"w"}"#)
        .await
        .unwrap();
    assert_eq!(keys(&desk).await, ["b"]);
}

#[tokio::test]
async fn the_program_may_refuse_a_change_and_hears_of_the_others() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let memory = Memory::new()
        .with_approval(|change, context| match change {
            NoteChange::Set { note, .. } if note.value.contains("secret") => {
                Err(format!("{} keeps no secrets", context.owner.as_str()))
            }
            NoteChange::Delete { key: "fixed", .. } => Err("it stays".to_owned()),
            _ => Ok(()),
        })
        .with_observer(move |change, _| {
            hears.lock().unwrap().push(match change {
                NoteChange::Set { key, old, .. } => format!("set {key} {}", old.is_some()),
                NoteChange::Delete { key, .. } => format!("delete {key}"),
                NoteChange::Expire { key, .. } => format!("expire {key}"),
            });
            // Who watches harms nothing.
            std::panic::resume_unwind(Box::new("heard"));
        });
    let mut desk = desk(memory).await;
    let secret = r#"{"key":"k","value":"a secret"}"#;
    let refused = desk.call("create_memory", secret).await.unwrap_err();
    assert_eq!(refused, "anna keeps no secrets");
    assert_eq!(desk.data(), r#"{"notes":{}}"#);
    assert!(desk.told().is_empty());

    desk.call("create_memory", r#"{"key":"fixed","value":"v","ttl":1}"#)
        .await
        .unwrap();
    let before = desk.data();
    let refused = desk.call("delete_memory", r#"{"key":"fixed"}"#).await;
    assert_eq!(refused.unwrap_err(), "it stays");
    assert_eq!(desk.data(), before);
    desk.answered().await;
    assert_eq!(*heard.lock().unwrap(), ["set fixed false", "expire fixed"]);
}

#[tokio::test]
async fn where_it_stands_and_what_it_belongs_to() {
    let cases = [
        (
            Memory::new(),
            StateScope::Resource,
            Band::System,
            Stability::Epoch,
        ),
        (
            Memory::new()
                .with_placement(Placement::Tail)
                .with_scope(StateScope::Path),
            StateScope::Path,
            Band::Tail,
            Stability::Volatile,
        ),
    ];
    for (memory, scope, band, stability) in cases {
        let mut desk = desk(memory).await;
        desk.call("create_memory", r#"{"key":"k","value":"v"}"#)
            .await
            .unwrap();
        assert_eq!(desk.layers.changed_states(&desk.states)[0].scope, scope);
        let said = desk.said().await;
        assert_eq!((said[0].band, said[0].stability), (band, stability));
    }
    let named = Memory::new().with_spec(|spec| spec.id = LayerId::new("facts").unwrap());
    let mut desk = desk(named).await;
    desk.call("create_facts", r#"{"key":"k","value":"v"}"#)
        .await
        .unwrap();
    assert!(desk.shown().await.contains("<facts>"));
    let both = desk.layers.with_layer(Memory::new()).unwrap();
    assert_eq!(both.tool_definitions().len(), 6);
}

#[tokio::test]
async fn nothing_breaks_out_of_its_note() {
    for hostile in HOSTILE {
        let mut desk = desk(Memory::new()).await;
        let text = quoted(hostile);
        let note = format!(r#"{{"key":{text},"value":{text},"description":{text}}}"#);
        desk.call("create_memory", &note).await.unwrap();
        let shown = desk.shown().await;
        assert!(!shown.contains("<system>"), "{shown}");
        assert_eq!(shown.matches("<memory>").count(), 1, "{shown}");
        assert_eq!(shown.matches("</memory>").count(), 1, "{shown}");
        let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{7f}');
        assert!(!shown.contains(controls), "{shown:?}");
        let told: Value = serde_json::from_str(&desk.told()[0]["memory:changed ".len()..]).unwrap();
        assert_eq!(told["key"], *hostile);
    }
    let mut desk = desk(Memory::new()).await;
    let huge = json!({"key": "k", "value": "x".repeat(1 << 20)}).to_string();
    let refused = desk.call("create_memory", &huge).await.unwrap_err();
    assert!(
        refused.contains("the value has 1048576 bytes, the limit is 8192"),
        "{refused}"
    );
}

#[tokio::test]
async fn states_given_back_restore_exactly_what_was_noted() {
    let mut desk = desk(Memory::new().with_scope(StateScope::Path)).await;
    desk.call("create_memory", r#"{"key":"a","value":"1","ttl":3}"#)
        .await
        .unwrap();
    let (first, shown) = (desk.stored(), desk.shown().await);
    desk.call("update_memory", r#"{"key":"a","value":"2"}"#)
        .await
        .unwrap();
    desk.call("create_memory", r#"{"key":"b","value":"3"}"#)
        .await
        .unwrap();
    let (second, later) = (desk.stored(), desk.shown().await);
    desk.rewind(&first);
    assert_eq!(
        (desk.shown().await, desk.data().as_bytes()),
        (shown, &first.bytes[..])
    );
    desk.rewind(&second);
    assert_eq!(
        (desk.shown().await, desk.data().as_bytes()),
        (later, &second.bytes[..])
    );
}
