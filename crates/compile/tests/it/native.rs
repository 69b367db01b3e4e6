//! A provider's own compaction is asked for as its schema says, and what it gave is sent back to it.

use contexture_catalogue::Catalogue;
use contexture_compile::compaction::NativeCompaction;
use contexture_compile::{Compiler, Target};
use contexture_ir::{Compaction, Item, Part};
use contexture_testdata::{Validator, schema};
use serde_json::Value;

use crate::fixtures::{assistant, user};

fn payload(items: &[Item], target: &Target) -> Value {
    let compiled = Compiler::new(Catalogue::builtin()).compile(items, target);
    serde_json::from_str(&compiled.unwrap().payload.to_json()).unwrap()
}

#[test]
fn the_request_is_what_the_providers_schema_says() {
    let anthropic = |trigger, instructions| NativeCompaction::Anthropic {
        trigger,
        instructions,
    };
    let openai = |threshold| NativeCompaction::OpenAiResponses { threshold };
    for (target, schema_name, native) in [
        (
            Target::anthropic("claude-sonnet-4-5"),
            "anthropic.messages.beta.request",
            anthropic(Some(60_000), Some("keep ids".to_owned())),
        ),
        (
            Target::anthropic("claude-sonnet-4-5"),
            "anthropic.messages.beta.request",
            anthropic(None, None),
        ),
        (
            Target::openai_responses("gpt-5.4"),
            "openai.responses.request",
            openai(Some(60_000)),
        ),
        (
            Target::openai_responses("gpt-5.4"),
            "openai.responses.request",
            openai(None),
        ),
    ] {
        let (name, value) = native.request_param();
        let payload = payload(&[user("hello")], &target.param(name, value.clone()));
        let sent: Value = value.parse_as().unwrap();
        assert_eq!(payload["context_management"], sent);
        let findings = Validator::new(&schema(schema_name)).validation_errors(&payload);
        assert_eq!(findings, Vec::<String>::new(), "{native:?}");
    }
    assert_eq!(
        anthropic(None, None).beta_header(),
        Some("compact-2026-01-12")
    );
}

#[test]
fn opaque_compaction_is_sent_to_its_maker_only() {
    let made: Item = Compaction {
        summary: vec![],
        encrypted_content: Some("opaque".to_owned()),
        format: Some("openai-responses-v1".to_owned()),
        ..Compaction::default()
    }
    .into();
    let items = [
        user("order W8342"),
        assistant("It is refunded."),
        made,
        user("thanks"),
    ];
    let maker = payload(&items, &Target::openai_responses("gpt-5.4"));
    assert!(
        maker["input"]
            .to_string()
            .contains("\"encrypted_content\":\"opaque\""),
        "{maker}"
    );
    for other in [
        Target::anthropic("claude-sonnet-4-5"),
        Target::gemini("gemini-2.5-pro"),
    ] {
        let told = payload(&items, &other).to_string();
        assert!(
            told.contains("order W8342") && !told.contains("opaque"),
            "{told}"
        );
    }
    // With a text of its own it is told to everybody.
    let twin: Item = Compaction {
        summary: vec![Part::output_text("W8342 was refunded")],
        format: Some("openai-responses-v1".to_owned()),
        ..Compaction::default()
    }
    .into();
    let told = payload(&[twin, user("thanks")], &Target::gemini("gemini-2.5-pro")).to_string();
    assert!(told.contains("W8342 was refunded"));
}
