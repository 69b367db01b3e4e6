//! What is kept, written in every format and sent back, is known; also after a client has written it anew.

use contexture_engine::MatchKind;
use contexture_ir::Transcript;
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};
use serde_json::{Value, json};

use super::client::{Client, call, item, model, output, owner, request, send, user};
use crate::support::engine;

/// A client's way of writing the same.
type Writing = fn(Format, &mut Value);

/// Keys in another order, no white space: what reading and writing does.
fn plainly(_: Format, _: &mut Value) {}

/// A text alone where there is one, an array of one where there was a text.
fn other_content(format: Format, document: &mut Value) {
    each_message(format, document, |role, content| {
        let kind = match (format, role) {
            (Format::OpenAiResponses, "assistant") => "output_text",
            (Format::OpenAiResponses, _) => "input_text",
            _ => "text",
        };
        *content = match content {
            Value::String(text) => json!([{"type": kind, "text": text}]),
            Value::Array(parts) => match &parts[..] {
                [one] if one["text"].is_string() && one["type"] == kind => one["text"].clone(),
                _ => return,
            },
            _ => return,
        };
    });
}

/// Texts cut in two, with empty ones between.
fn split_texts(format: Format, document: &mut Value) {
    let cut = |part: &Value| -> Vec<Value> {
        let text = part["text"]
            .as_str()
            .filter(|text| text.is_ascii() && text.len() > 1);
        let Some((first, rest)) = text.map(|text| text.split_at(text.len() / 2)) else {
            return vec![part.clone()];
        };
        let with = |text: &str| {
            let mut part = part.clone();
            part["text"] = text.into();
            part
        };
        vec![with(first), with(rest)]
    };
    each_message(format, document, |_, content| {
        if let Value::Array(parts) = content {
            *parts = parts.iter().flat_map(cut).collect();
        }
    });
}

/// Arguments written anew, with spaces.
fn other_arguments(_: Format, document: &mut Value) {
    match document {
        Value::Object(object) => {
            if let Some(Value::String(text)) = object.get_mut("arguments") {
                let value: Value = serde_json::from_str(text).unwrap();
                *text = serde_json::to_string_pretty(&value).unwrap();
            }
            object
                .values_mut()
                .for_each(|value| other_arguments(Format::Items, value));
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| other_arguments(Format::Items, value)),
        _ => {}
    }
}

/// No member where nothing is said.
fn without_nulls(_: Format, document: &mut Value) {
    match document {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object
                .values_mut()
                .for_each(|value| without_nulls(Format::Items, value));
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| without_nulls(Format::Items, value)),
        _ => {}
    }
}

fn each_message(format: Format, document: &mut Value, change: impl Fn(&str, &mut Value)) {
    let (list, content) = match format {
        Format::OpenAiChat | Format::Anthropic | Format::Bedrock => ("messages", "content"),
        Format::OpenAiResponses => ("input", "content"),
        Format::Gemini => ("contents", "parts"),
        Format::Ui | Format::Items => return,
    };
    for message in document[list].as_array_mut().unwrap() {
        let role = message["role"].as_str().unwrap_or_default().to_owned();
        if let Some(content) = message.get_mut(content) {
            change(&role, content);
        }
    }
}

/// Whether a history is known when it comes back in a format.
async fn check(client: &Client<'_>, format: Format, writing: Writing) {
    let kind = match format {
        Format::Ui => DocumentKind::Messages,
        _ => DocumentKind::Request,
    };
    let transcript = Transcript {
        model: Some("a-model".to_owned()),
        ..request(&client.history)
    };
    let written = lower(&Dialect::of(format), kind, &transcript).json;
    let mut document: Value = serde_json::from_str(&written).unwrap();
    writing(format, &mut document);
    let lifted = lift(format, &document.to_string()).unwrap().transcript;
    let sent = send(client.engine, &lifted.items).await;
    assert_eq!(
        (sent.matched, sent.appended.len()),
        (MatchKind::Retry, 0),
        "{format}: {document:#}\n{:#?}",
        lifted.items
    );
}

async fn check_all(client: &Client<'_>, formats: &[Format]) {
    let writings: [Writing; 5] = [
        plainly,
        other_content,
        split_texts,
        other_arguments,
        without_nulls,
    ];
    for format in formats {
        for writing in writings {
            check(client, *format, writing).await;
        }
    }
    let all = super::client::conversations(client.engine, &owner()).await;
    assert_eq!(all.len(), 1);
}

const ALL: [Format; 6] = [
    Format::OpenAiChat,
    Format::OpenAiResponses,
    Format::Anthropic,
    Format::Gemini,
    Format::Ui,
    Format::Items,
];

#[tokio::test]
async fn words_calls_and_outputs() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client
        .turn(
            &[user("What is here?")],
            &[model("I look."), call("1", "a"), call("2", "b")],
        )
        .await;
    client
        .turn(&[output("1", "A"), output("2", "B")], &[call("3", "c")])
        .await;
    client.turn(&[output("3", "C")], &[model("Letters.")]).await;
    client
        .turn(
            &[user("And"), user(" more?")],
            &[model("No."), model(" None.")],
        )
        .await;
    check_all(&client, &ALL).await;
}

#[tokio::test]
async fn pictures_by_their_bytes() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let picture = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"this"},
        {"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="},{"type":"input_text","text":"?"}]}"#;
    client.turn(&[item(picture)], &[model("A picture.")]).await;
    client.turn(&[user("Sure?")], &[model("Yes.")]).await;
    check_all(&client, &ALL).await;
}

#[tokio::test]
async fn thoughts_are_passed_over() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let thought = r#"{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],
        "signature":"c2ln","format":"anthropic-claude-v1"}"#;
    client
        .turn(
            &[user("Think.")],
            &[item(thought), model("So."), call("1", "a")],
        )
        .await;
    client
        .turn(&[output("1", "A")], &[item(thought), model("Then.")])
        .await;
    check_all(&client, &ALL).await;
}
