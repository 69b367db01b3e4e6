//! Faults that compilers of contexts are known for, each brought about.
//!
//! The table of all of them is docs/behaviour/compile-lessons.md. Not here: those that the tests of a pass show already.

use std::sync::Arc;

use contexture_compile::{
    Clear, ClearPolicy, CompileInput, Compiled, Contribution, Cover, HistoryPolicy, OmitReason,
    Pass, PassPoint, PathItem, Placement, Plan, Rewriting, Scratch, TrimPolicy, ViewItem, compile,
};
use contexture_ir::{
    FunctionCall, FunctionCallOutput, FunctionTool, ImagePart, Item, Message, Output, Part, Raw,
    Role, ToolDefinition,
};
use contexture_wire::Format;
use serde_json::{Value, json};

use crate::fixtures::{Quarter, assistant, call, once, output, request, user};
use crate::invariants::check_report;
use crate::real_sessions::closed;

fn document(compiled: &Compiled) -> Value {
    serde_json::from_str(&compiled.payload.to_json()).unwrap()
}

/// A picture of more than a megabyte takes what a picture takes, not what its characters would as text.
#[test]
fn a_picture_is_not_counted_as_text() {
    let mut asked = Message::text(Role::User, "What is this?");
    asked.content.push(Part::InputImage(ImagePart {
        image_url: Some(format!(
            "data:image/png;base64,{}",
            "iVBORw0KGgo".repeat(130_000)
        )),
        ..ImagePart::default()
    }));
    let path = PathItem::from_items([Item::from(asked)]);
    for format in Format::PROVIDERS {
        let compiled = once(&path, &[], &request(format, 2_000)).unwrap();
        check_report(&compiled, &path, format.as_str());
        assert!(compiled.report.totals.tokens < 200, "{format}");
        assert!(compiled.payload.to_json().len() > 1_400_000);
    }
}

/// Whatever is sent is counted: instructions, tools and state as the history is, and room for the answer is kept.
#[test]
fn everything_that_is_sent_is_counted() {
    let path = PathItem::from_items([user("hello")]);
    let tool = ToolDefinition::Function(FunctionTool {
        name: "look_up".to_owned(),
        description: Some("word ".repeat(400)),
        parameters: Some(Raw::parse(r#"{"type":"object"}"#).unwrap()),
        ..FunctionTool::default()
    });
    for format in Format::PROVIDERS {
        let bare = request(format, 2_000);
        let mut offered = bare.clone();
        offered.tools = vec![tool.clone()];
        let system = Contribution::system("role", "word ".repeat(400));
        let state = Contribution::state(&json!({"note": "word ".repeat(400)}), Placement::Tail);
        let tokens = |aside: &[Contribution], request| {
            let compiled = once(&path, aside, request).unwrap();
            check_report(&compiled, &path, format.as_str());
            compiled.report.totals.tokens
        };
        let nothing = tokens(&[], &bare);
        for (what, all) in [
            ("tools", tokens(&[], &offered)),
            ("instructions", tokens(&[system], &bare)),
            ("state", tokens(&[state.unwrap()], &bare)),
        ] {
            // Two thousand bytes are five hundred tokens here; what providers say around tools is counted too.
            assert!(
                all >= nothing + 500,
                "{format}: {what}: {nothing} and {all}"
            );
        }
    }
}

/// A host's pass that edits what the model said and called.
#[derive(Debug)]
struct Editing;

impl Pass for Editing {
    fn name(&self) -> &str {
        "editing"
    }

    fn point(&self) -> PassPoint {
        PassPoint::AfterView
    }

    fn transform_items(&self, mut items: Vec<ViewItem>) -> Vec<ViewItem> {
        for item in &mut items {
            let edited = match &*item.item {
                Item::Message(message) if message.role == Role::Assistant => assistant("edited"),
                Item::FunctionCall(call) => FunctionCall {
                    arguments: r#"{"path":"/new"}"#.to_owned(),
                    ..call.clone()
                }
                .into(),
                _ => continue,
            };
            item.item = Arc::new(edited);
        }
        items
    }
}

/// Who edits an answer edits nothing else: its calls keep their outputs, and edited arguments are those that are sent.
#[test]
fn edited_answer_keeps_calls_and_sends_edited_arguments() {
    let path = PathItem::from_items([
        user("Look."),
        assistant("I look."),
        call("c1", r#"{"path":"/old"}"#),
        output("c1", "found"),
        user("And?"),
    ]);
    for format in Format::PROVIDERS {
        let request = request(format, 2_000);
        let input = CompileInput {
            path: (&path).into(),
            covers: &[],
            dropped_rules: &[],
            passes: &[&Editing],
            contributions: &[],
            plan: &Plan::default(),
            request: &request,
            counter: &Quarter,
            cancel: None,
        };
        let compiled = compile(&input, &mut Scratch::new()).unwrap();
        check_report(&compiled, &path, format.as_str());
        assert_eq!(closed(format, &document(&compiled)), Ok(()), "{format}");
        let text = compiled.payload.to_json();
        assert!(text.contains("edited") && text.contains("/new") && text.contains("found"));
        assert!(
            !text.contains("I look.") && !text.contains("/old"),
            "{text}"
        );
    }
}

/// State in the system prompt stands there and nowhere behind the history.
#[test]
fn state_in_the_system_prompt_is_no_message_behind_the_history() {
    let path = PathItem::from_items([user("one"), assistant("two"), user("three")]);
    let state = Contribution::state(&json!({"open": 2}), Placement::System).unwrap();
    let role = Contribution::system("role", "be kind");
    for format in Format::PROVIDERS {
        let compiled = once(
            &path,
            &[role.clone(), state.clone()],
            &request(format, 2_000),
        );
        let document = document(&compiled.unwrap());
        let messages = ["messages", "input", "contents"];
        let messages = messages.iter().find_map(|name| document[*name].as_array());
        let last = messages.unwrap().last().unwrap().to_string();
        assert!(last.contains("three"), "{format}: {document}");
        assert_eq!(document.to_string().matches("<open>2</open>").count(), 1);
        assert!(!last.contains("<open>"), "{format}: {document}");
    }
}

/// Keys that are special somewhere are keys here, different keys stay different, and every value is there.
#[test]
fn no_key_of_the_state_is_special() {
    let state = json!({
        "__proto__": "proto", "constructor": "built", "toString": "said", "a-b": "dash", "a.b": "dot", "a_b": "low",
        "1st": "first", "": "nameless", "when": "2026-01-01T00:00:00Z", "bytes": [1, 2], "\u{0}\u{7}": "control",
    });
    let path = PathItem::from_items([user("hello")]);
    let state = Contribution::state(&state, Placement::Tail).unwrap();
    let compiled = once(&path, &[state], &request(Format::OpenAiChat, 4_000)).unwrap();
    let document = document(&compiled);
    let said = document["messages"][1]["content"].to_string();
    for value in [
        "proto",
        "built",
        "said",
        "dash",
        "dot",
        "low",
        "first",
        "nameless",
        "2026-01-01T00:00:00Z",
        "control",
    ] {
        assert!(said.contains(&format!(">{value}<")), "{value}: {said}");
    }
    for name in ["__proto__", "constructor", "a-b", "a.b", "a_b"] {
        assert_eq!(
            said.matches(&format!("<{name}>")).count(),
            1,
            "{name}: {said}"
        );
    }
    assert!(
        !said.contains('\u{0}') && !said.contains("\\u0000"),
        "{said}"
    );
}

/// A path whose newest round holds many long outputs of one step.
fn long_steps() -> Vec<PathItem> {
    let mut items = vec![user("the task")];
    for step in 0..3 {
        let ids: Vec<String> = (0..4).map(|at| format!("c{step}{at}")).collect();
        items.extend(
            ids.iter()
                .map(|id| FunctionCall::new(id, "read", "{}").into()),
        );
        items.extend(
            ids.iter()
                .map(|id| output(id, &format!("{id} {}", "x".repeat(400)))),
        );
    }
    PathItem::from_items(items)
}

fn clear_all() -> HistoryPolicy {
    HistoryPolicy {
        clear: Clear::By(ClearPolicy {
            trigger: 0,
            low_water: 0,
            calls: u64::MAX,
            keep_recent: 0,
            min_bytes: 0,
            keep_errors: false,
            ..ClearPolicy::default()
        }),
        trim: TrimPolicy { low_water: 100 },
        ..HistoryPolicy::default()
    }
}

/// However much is to be cleared: what the model has not read yet is not.
#[test]
fn what_the_model_has_not_read_is_not_cleared() {
    let path = long_steps();
    for format in Format::PROVIDERS {
        let mut request = request(format, 1_200);
        request.history = clear_all();
        let compiled = once(&path, &[], &request).unwrap();
        check_report(&compiled, &path, format.as_str());
        assert_eq!(closed(format, &document(&compiled)), Ok(()), "{format}");
        let text = compiled.payload.to_json();
        for id in ["c20 x", "c21 x", "c22 x", "c23 x"] {
            assert!(text.contains(id), "{format}: {id}: {text}");
        }
        assert!(!text.contains("c00 x"), "{format}: {text}");
        assert!(!compiled.report.rewritten.is_empty(), "{format}");
    }
}

/// An output that failed has failed when its text is cleared too.
#[test]
fn a_cleared_failure_is_still_a_failure() {
    let mut path = long_steps();
    for entry in &mut path {
        if let Item::FunctionCallOutput(output) = &*entry.item {
            let failed = FunctionCallOutput {
                is_error: Some(true),
                output: Output::Parts(vec![Part::input_text(output_text(output))]),
                ..output.clone()
            };
            *entry = PathItem::new(Item::from(failed));
        }
    }
    let mut request = request(Format::Anthropic, 1_100);
    request.history = clear_all();
    let compiled = once(&path, &[], &request).unwrap();
    let cleared = compiled.report.rewritten.iter();
    let cleared =
        cleared.filter(|one| matches!(one.rewriting, Rewriting::Cleared | Rewriting::Repeated));
    assert!(cleared.count() > 0, "{:?}", compiled.report.omitted);
    let text = compiled.payload.to_json();
    assert_eq!(
        text.matches(r#""is_error":true"#).count(),
        text.matches(r#""type":"tool_result""#).count(),
        "{text}"
    );
}

fn output_text(output: &FunctionCallOutput) -> String {
    match &output.output {
        Output::Text(text) => text.clone(),
        Output::Parts(parts) => parts.iter().filter_map(Part::as_text).collect(),
    }
}

fn covered(path: &[PathItem], format: Format) -> Compiled {
    let request = request(format, 10_000);
    let cover = Cover {
        compaction: path.len() - 2,
        first: 1,
        last: path.len() - 3,
    };
    let input = CompileInput {
        path: path.into(),
        covers: &[cover],
        dropped_rules: &[],
        passes: &[],
        contributions: &[],
        plan: &Plan::default(),
        request: &request,
        counter: &Quarter,
        cancel: None,
    };
    let compiled = compile(&input, &mut Scratch::new()).unwrap();
    check_report(&compiled, path, format.as_str());
    assert_eq!(closed(format, &document(&compiled)), Ok(()), "{format}");
    compiled
}

fn with_compaction(mut items: Vec<Item>) -> Vec<PathItem> {
    let compaction = r#"{"type":"compaction","summary":[{"type":"summary_text","text":"all fine"}],"ctx:covers":{}}"#;
    items.extend([Item::parse(compaction).unwrap(), user("and now?")]);
    PathItem::from_items(items)
}

/// How many tokens the compaction is said to stand for.
fn stood_for(compiled: &Compiled) -> u64 {
    let mut rows = compiled.report.segments.iter();
    let row = rows.find(|row| row.rule == "stands for what it covers");
    row.unwrap().omitted_tokens
}

/// What the host said in the midst of a history is no history: no compaction stands for it.
#[test]
fn no_compaction_stands_for_the_hosts_words() {
    let host = Item::from(Message::text(Role::System, "never delete"));
    let path = with_compaction(vec![
        user("the task"),
        call("c1", "{}"),
        output("c1", "one"),
        assistant("done"),
        host,
        user("more"),
        assistant("done again"),
    ]);
    for format in Format::PROVIDERS {
        let compiled = covered(&path, format);
        let text = compiled.payload.to_json();
        let places = ["the task", "all fine", "never delete", "and now?"];
        let places = places.map(|said| text.find(said).unwrap_or_default());
        assert!(places[0] > 0 && places.is_sorted(), "{format}: {text}");
        assert!(!text.contains("done"), "{format}: {text}");
        let covered = compiled.report.omitted.iter();
        let covered = covered.filter(|span| span.reason == OmitReason::Covered);
        assert_eq!(covered.map(|span| span.items).sum::<usize>(), 5);
        let mut longer = path.clone();
        longer[4] = PathItem::new(Item::from(Message::text(
            Role::System,
            "never delete ".repeat(50),
        )));
        assert_eq!(
            stood_for(&self::covered(&longer, format)),
            stood_for(&compiled)
        );
    }
}

/// What is pinned is sent whole, and no compaction stands for it.
#[test]
fn no_compaction_stands_for_what_is_pinned() {
    let mut path = with_compaction(vec![
        user("the task"),
        call("c1", "{}"),
        output("c1", "one"),
        call("c2", "{}"),
        output("c2", "two"),
        assistant("done"),
        user("my number is 7"),
        assistant("noted"),
    ]);
    path[4].pinned = true;
    path[6].pinned = true;
    for format in Format::PROVIDERS {
        let compiled = covered(&path, format);
        let mut longer = path.clone();
        longer[6] = PathItem::new(user(&"my number is 7 ".repeat(50)));
        longer[6].pinned = true;
        assert_eq!(stood_for(&covered(&longer, format)), stood_for(&compiled));
        let text = compiled.payload.to_json();
        assert!(
            text.contains("two") && text.contains("my number is 7"),
            "{format}: {text}"
        );
        assert!(
            !text.contains("\"one\"") && text.contains("all fine"),
            "{text}"
        );
    }
}
