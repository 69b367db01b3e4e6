//! JSON itself, and names: links, ids, paths of providers.

use std::fmt::Display;
use std::str::FromStr;

use contexture_condense::Link;
use contexture_ir::{
    BranchName, CheckpointName, ContentHash, ConversationId, Fields, MessageId, NodeId, Owner, Raw,
    canonical_json, quote_json, replace_lone_surrogates,
};
use contexture_store::{BlobId, MetadataKey, StateKey};
use contexture_wire::{CallPath, Format, ResponseMode};

use crate::input::{
    assert_bounded, assert_json, assert_same_value, join_choice, split_text_choice, value_of,
};

/// A JSON text: its canonical form is the same value and its own canonical form.
pub(crate) fn check_json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    assert_eq!(value_of(&quote_json(text)), Some(text.into()));
    let replaced = replace_lone_surrogates(text);
    assert_bounded("replaced", text.len(), replaced.len());
    assert_eq!(replace_lone_surrogates(&replaced), replaced);
    let Ok(raw) = Raw::parse(text) else {
        return;
    };
    // Only white space around the value is left out.
    assert_eq!(raw.get(), text.trim_matches([' ', '\n', '\r', '\t']));
    assert_json("a replaced text", &replaced);
    if let Some(canonical) = canonical_json(text) {
        assert_bounded("canonical", text.len(), canonical.len());
        assert_eq!(canonical_json(&canonical), Some(canonical.clone()));
        assert_same_value("canonical", &canonical, text);
    }
    if let Ok(fields) = Fields::parse(text) {
        let members: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("{}:{}", quote_json(key), value.get()))
            .collect();
        let written = format!("{{{}}}", members.join(","));
        assert_eq!(value_of(&written), value_of(text));
    }
}

/// Texts with everything that readers differ about.
pub(crate) fn json_texts() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"b":[1.0,-0,1e2,1E400,12345678901234567890123,0.1],"a":"\u00e9\ud83d\ude00\/","b":null}"#,
        r#" { "s" : "\ud800x" , "t":"\udc00\ud800", "" : [ [ ] , { } ] } "#,
        r#"[true,false,null,"",1e-400,-0.0,9007199254740993]"#,
        "\"\\u0000\u{7f}\u{2028}\"",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// A name of any kind has one spelling: what is read is written as it came. Only the digits of ids may be capitals.
pub(crate) fn check_name(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check_spelling::<Link>(text);
    check_spelling::<ConversationId>(text);
    check_spelling::<MessageId>(text);
    check_spelling::<BranchName>(text);
    check_spelling::<CheckpointName>(text);
    check_spelling::<Owner>(text);
    check_spelling::<StateKey>(text);
    check_spelling::<MetadataKey>(text);
    let digits = text.to_ascii_lowercase();
    for id in [
        text.parse::<NodeId>().ok().map(|id| id.to_string()),
        text.parse::<ContentHash>().ok().map(|id| id.to_string()),
        text.parse::<BlobId>().ok().map(|id| id.to_string()),
    ] {
        assert!(id.is_none_or(|id| id == digits), "{text}");
    }
}

fn check_spelling<T: FromStr + Display>(text: &str) {
    if let Ok(name) = text.parse::<T>() {
        let kind = std::any::type_name::<T>();
        assert_eq!(name.to_string(), text, "{kind}");
        assert!(text.len() <= 4096, "{kind} of {} bytes", text.len());
    }
}

/// Names that are valid, and some that nearly are.
pub(crate) fn names() -> Vec<Vec<u8>> {
    let texts = [
        "context://vfs/0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef",
        "acme/ada",
        "main",
        "path/notes",
        "support-42.a_b:c",
        "customer.tier",
        "context://vfs/../../etc/passwd",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// The path of a request: the call that it is, is a call again when it is written.
pub(crate) fn check_provider_path(data: &[u8]) {
    let Some((format, path)) = split_text_choice(&Format::PROVIDERS, data) else {
        return;
    };
    let Some(http) = format.spec().http() else {
        return;
    };
    let root = http.root_match(path, &|name| name.len() % 2 == 0);
    assert_eq!(
        root.is_some(),
        http.root_match(path, &|name| name.len() % 2 == 0).is_some()
    );
    let Some(call) = http.path.parse_call(path) else {
        return;
    };
    if let (CallPath::Model { .. }, Some(model)) = (&http.path, call.model) {
        assert!(path.contains(model));
        assert_eq!(http.path.model_in(path), Some(model));
        let steps = http.path.call_steps(model, ResponseMode::Whole);
        let again = format!("/{}", steps.join("/"));
        assert!(http.path.parse_call(&again).is_some(), "{path}: {again}");
    }
}

/// Paths of calls, as providers and gateways spell them.
pub(crate) fn provider_paths() -> Vec<Vec<u8>> {
    let paths = [
        "/v1/chat/completions",
        "/openai/v1/responses",
        "/V1/Messages",
        "/v1beta/models/gemini-3-pro:streamGenerateContent",
        "/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude/converse",
        "/model/a:b/converse-stream",
        "/v1/messages/count_tokens",
    ];
    let formats = 0..Format::PROVIDERS.len();
    let inputs = formats.flat_map(|index| paths.map(|path| join_choice(index, path)));
    inputs.collect()
}
