//! Items read and written.

use contexture_ir::{Error, Fields, Item, Output, Part, Raw, Role, UiMessage, slice_range};
use proptest::prelude::*;

/// Reads an item, writes it, and compares the JSON values.
#[track_caller]
fn check(json: &str, expected: &str) {
    let item = Item::parse(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&item.to_json()), value(expected), "{json}");
    assert_eq!(Item::parse(&item.to_json()).unwrap(), item, "{json}");
}

#[track_caller]
fn same(json: &str) {
    check(json, json);
}

#[track_caller]
fn refused(json: &str, expected: &str) {
    let error = Item::parse(json).unwrap_err();
    assert_eq!(error.to_string(), expected, "{json}");
}

#[test]
fn every_kind_survives() {
    same(
        r#"{"type":"message","id":"m","role":"user","status":"completed","content":[
        {"type":"input_text","text":"a"},
        {"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"high"},
        {"type":"input_file","file_id":"f","filename":"a.pdf","media_type":"application/pdf"}]}"#,
    );
    same(
        r#"{"type":"message","role":"assistant","phase":"final_answer","content":[
        {"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u"}]},
        {"type":"refusal","refusal":"no"}]}"#,
    );
    same(
        r#"{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{","status":"incomplete"}"#,
    );
    same(r#"{"type":"function_call_output","call_id":"c","output":"x","is_error":true}"#);
    same(
        r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"x"}]}"#,
    );
    same(
        r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"s"}],
        "content":[{"type":"reasoning_text","text":"t"}],"encrypted_content":"e","signature":"g","format":"x"}"#,
    );
    same(r#"{"type":"compaction","id":"c","encrypted_content":"e"}"#);
}

#[test]
fn input_may_be_shorthand_or_camel_case() {
    check(
        r#"{"role":"user","content":"hi"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
    );
    check(
        r#"{"type":"function_call_output","callId":"c","isError":false,"output":"x"}"#,
        r#"{"type":"function_call_output","call_id":"c","is_error":false,"output":"x"}"#,
    );
    check(
        r#"{"type":"message","role":"user","content":[{"type":"input_image","imageUrl":"u"},
            {"type":"input_file","fileData":"d","fileId":"i","fileUrl":"l"}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"u"},
            {"type":"input_file","file_data":"d","file_id":"i","file_url":"l"}]}"#,
    );
}

/// No provider knows our second spellings, so none may come back, whatever stands there: `null` says nothing.
#[test]
fn second_spellings_are_never_written() {
    let image = |fields: &str| {
        format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_image",{fields}}}]}}"#
        )
    };
    let file = |fields: &str| {
        format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_file",{fields}}}]}}"#
        )
    };
    let output = |fields: &str| {
        format!(r#"{{"type":"function_call_output","call_id":"c","output":"",{fields}}}"#)
    };
    let thought = |fields: &str| format!(r#"{{"type":"reasoning","summary":[],{fields}}}"#);
    let summary = |fields: &str| format!(r#"{{"type":"compaction",{fields}}}"#);
    type Around<'a> = &'a dyn Fn(&str) -> String;
    let cases: [(Around<'_>, &str, &str, &str); 10] = [
        (&image, "image_url", "imageUrl", "\"u\""),
        (&image, "file_id", "fileId", "\"u\""),
        (&image, "media_type", "mediaType", "\"u\""),
        (&file, "file_data", "fileData", "\"u\""),
        (&file, "file_id", "fileId", "\"u\""),
        (&file, "file_url", "fileUrl", "\"u\""),
        (&file, "media_type", "mediaType", "\"u\""),
        (&output, "is_error", "isError", "true"),
        (&thought, "encrypted_content", "encryptedContent", "\"u\""),
        (&summary, "encrypted_content", "encryptedContent", "\"u\""),
    ];
    for (around, name, alias, value) in cases {
        let written = |fields: String| Item::parse(&around(&fields)).unwrap().to_json();
        let plain = written(format!("\"{name}\":{value}"));
        for fields in [
            format!("\"{alias}\":{value}"),
            format!("\"{alias}\":null,\"{name}\":{value}"),
            format!("\"{name}\":null,\"{alias}\":{value}"),
        ] {
            assert_eq!(written(fields), plain);
        }
        let null = written(format!("\"{alias}\":null,\"other\":1"));
        assert_eq!(null, written("\"other\":1".to_owned()));
        let both = format!("\"{name}\":{value},\"{alias}\":{value}");
        assert!(Item::parse(&around(&both)).is_err(), "{both}");
    }
}

/// Of a member that is written twice the last one counts; what stood before it stays as data, however often the item is
/// written and read.
#[test]
fn the_last_of_repeated_members_counts() {
    let call = r#"{"type":"function_call","call_id":"a","call_id":"c","name":"f","arguments":"1","arguments":"{}","n":1,"n":2}"#;
    let item = Item::parse(call).unwrap();
    let Item::FunctionCall(read) = &item else {
        panic!("a call")
    };
    assert_eq!((&*read.call_id, &*read.arguments), ("c", "{}"));
    let kept = read.extra.get(contexture_ir::REPEATED).unwrap();
    assert_eq!(kept.get(), r#"{"call_id":"a","arguments":"1"}"#);
    assert_eq!(read.extra.get("n").map(Raw::get), Some("2"));
    let json = item.to_json();
    assert!(json.contains(r#""n":1,"n":2"#), "{json}");
    assert_eq!(Item::parse(&json).unwrap(), item);
    let message = r#"{"type":"message","role":"user","role":"assistant","content":[]}"#;
    assert_eq!(Item::parse(message).unwrap().role(), Some(Role::Assistant));
    // `null` behind a value says that there is none.
    let fields = Fields::parse(r#"{"a":1,"a":null}"#)
        .unwrap()
        .take_present(&["a"]);
    assert!(fields.unwrap().is_none());
}

#[test]
fn a_type_has_a_name_on_both_sides() {
    for kind in ["", ":x", "x:", ":"] {
        refused(
            &format!(r#"{{"type":"{kind}","id":"i"}}"#),
            &format!("`type`: expected a type or `slug:type`, found {kind}"),
        );
    }
    // Words of a newer version of the specification are kept.
    same(r#"{"type":"acme:note","x":1}"#);
    same(r#"{"type":"message","role":"user","content":[],"status":"done"}"#);
}

#[test]
fn the_unknown_is_kept_verbatim() {
    let odd = r#"{"type":"acme:note", "n":12345678901234567890123, "n":1.0, "deep":{"a":[1e400]}}"#;
    assert_eq!(Item::parse(odd).unwrap().to_json(), odd);
    same(
        r#"{"type":"web_search_call","id":"w","status":"searching","action":{"type":"search","query":"q"}}"#,
    );
    same(
        r#"{"type":"message","role":"user","content":[{"type":"input_video","video_url":"v"}],"name":"ada"}"#,
    );
    same(
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":"","status":"paused","namespace":null}"#,
    );
}

#[test]
fn errors_name_the_place() {
    refused("[]", "the value: expected an object, found []");
    refused(r#"{"call_id":"x"}"#, "the value: missing field `type`");
    refused(
        r#"{"type":"message","role":"robot","content":[]}"#,
        "`role`: expected `user`, `assistant`, `system` or `developer`, found robot",
    );
    refused(
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text"}]}"#,
        "`content[1]`: missing field `text`",
    );
    refused(
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":7}]}"#,
        "`content[0].text`: expected a string, found 7",
    );
    refused(
        r#"{"type":"function_call","call_id":"a","callId":"b","name":"f","arguments":""}"#,
        "the value: field `callId` stands twice",
    );
    assert!(matches!(Item::parse("{\"type\":"), Err(Error::Json { .. })));
}

#[test]
fn wire_fields_are_kept_by_format() {
    let Item::Message(mut message) =
        Item::parse(r#"{"role":"user","content":"hi","x":1}"#).unwrap()
    else {
        panic!("a message")
    };
    let mut fields = contexture_ir::Extra::new();
    fields.set(
        "cache_control",
        Raw::parse(r#"{"type":"ephemeral"}"#).unwrap(),
    );
    message.extra.set_wire_fields("anthropic", fields.clone());
    let Item::Message(read) = Item::parse(&Item::from(message.clone()).to_json()).unwrap() else {
        panic!("a message")
    };
    assert_eq!(read.extra.wire_fields("anthropic"), fields);
    assert!(read.extra.wire_fields("gemini").is_empty());
    assert_eq!(read.extra.own_members().count(), 1);
    message
        .extra
        .set_wire_fields("anthropic", contexture_ir::Extra::new());
    assert!(!Item::from(message).to_json().contains("ctx:wire"));
}

#[test]
fn text_is_what_search_sees() {
    let text = |json: &str| Item::parse(json).unwrap().text();
    assert_eq!(
        text(
            r#"{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}"#
        ),
        "a\nb"
    );
    assert_eq!(
        text(r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#),
        "f {}"
    );
    assert_eq!(text(r#"{"type":"acme:x"}"#), "");
}

#[test]
fn ui_messages_read_and_write() {
    let json = r#"{"id":"m","role":"user","metadata":{"a":1},"parts":[{"type":"text","text":"hi"},{"type":"odd","x":[]}]}"#;
    let message = UiMessage::parse(json).unwrap();
    assert_eq!(serde_json::to_string(&message).unwrap(), json);
    assert_eq!(message.joined_text(), "hi");
    assert!(UiMessage::parse(r#"{"role":"tool","parts":[]}"#).is_err());
    assert!(UiMessage::parse(r#"{"role":"user","content":"hi"}"#).is_err());
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(
        prop_oneof![
            ".*".prop_map(Part::input_text),
            ".*".prop_map(Part::output_text),
            (".*", ".*").prop_map(|(url, detail)| Part::InputImage(contexture_ir::ImagePart {
                image_url: Some(url),
                detail: Some(detail),
                ..Default::default()
            })),
        ],
        0..4,
    )
}

fn items() -> impl Strategy<Value = Item> {
    let role = prop::sample::select(vec![
        Role::User,
        Role::Assistant,
        Role::System,
        Role::Developer,
    ]);
    prop_oneof![
        (role, parts()).prop_map(|(role, parts)| contexture_ir::Message::new(role, parts).into()),
        (".*", ".*", ".*")
            .prop_map(|(id, name, args)| contexture_ir::FunctionCall::new(id, name, args).into()),
        (".*", parts()).prop_map(|(id, parts)| {
            contexture_ir::FunctionCallOutput::new(id, Output::Parts(parts)).into()
        }),
    ]
}

#[test]
fn a_member_that_cannot_be_read_stays() {
    let text = r#"{"a": 1, "b_b": "x", "bB": "y", "c": null}"#;
    let mut fields = Fields::parse(text).unwrap();
    assert!(fields.take_string(&["a"]).is_err());
    assert!(fields.take_as::<bool>(&["a"], "a boolean").is_err());
    assert!(fields.take_field(&["b_b", "bB"]).is_err());
    assert!(fields.take_string(&["b_b", "bB"]).is_err());
    assert_eq!(fields.take_string(&["c"]).unwrap(), None);
    let names: Vec<&str> = fields.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b_b", "bB", "c"]);
    assert_eq!(fields.take_as(&["a"], "a number").unwrap(), Some(1_u8));
    assert!(fields.get(&["a"]).is_none());
}

proptest! {
    #[test]
    fn writing_then_reading_is_the_identity(item in items()) {
        prop_assert_eq!(Item::parse(&item.to_json()).unwrap(), item);
    }

    #[test]
    fn hostile_text_never_panics(text in r#"[\[\]{}":,a-z0-9\\ \n]{0,80}"#) {
        let _ = Item::parse(&text);
        let _ = UiMessage::parse(&text);
        let _ = contexture_ir::canonical_json(&text);
    }
}

#[test]
fn only_slices_of_a_text_have_a_place_in_it() {
    let text = String::from("one two");
    let other = String::from("two");
    assert_eq!(slice_range(&text, &text), Some(0..7));
    assert_eq!(slice_range(&text, &text[7..]), Some(7..7));
    assert_eq!(slice_range(&text[4..], &text), None);
    assert_eq!(slice_range(&text, &other), None);
}
