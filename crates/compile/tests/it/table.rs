//! The front and the table people read.

use contexture_catalogue::{Catalogue, CatalogueError};
use contexture_compile::{
    CompileError, Compiler, Contribution, HistoryPolicy, Target, Width, render_table,
};
use contexture_ir::{Item, Raw, ReasoningOptions, RequestOptions, ResponseFormat};
use contexture_wire::Format;

use crate::fixtures::{assistant, call, output, user};

fn items() -> Vec<Item> {
    let mut items = vec![user("Fix the failing test in the date module.")];
    for at in 0..12 {
        let id = format!("c{at}");
        items.push(assistant(&format!("Step {at}: let me look.")));
        items.push(call(&id, "{\"path\":\"src/date.rs\"}"));
        items.push(output(
            &id,
            &"fn parse(text: &str) -> Option<Date> { None }\n".repeat(12),
        ));
    }
    items.push(assistant("Which calendar do you mean?"));
    items.push(user("The Gregorian one."));
    items
}

fn target() -> Target {
    Target::openai_chat("gpt-4o")
        .window(1_800)
        .reserve(300)
        .history(HistoryPolicy::for_one_call())
}

#[test]
fn the_table_says_what_was_sent_and_why() {
    let compiler = Compiler::new(Catalogue::builtin())
        .with_contribution(Contribution::system(
            "instructions",
            "You are a careful engineer.",
        ))
        .with_contribution(Contribution::tail("state", "<state>2 files open</state>"));
    let compiled = compiler.compile(&items(), &target()).unwrap();
    let table = render_table(&compiled.report, Width::default());
    let fingerprint = &compiled.report.payload.fingerprint;
    assert_eq!(fingerprint.len(), 32);
    let table = table.replace(fingerprint, "<fingerprint>");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/table.txt");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(golden, &table).unwrap();
    }
    assert_eq!(table, std::fs::read_to_string(golden).unwrap());
    for line in render_table(&compiled.report, Width(40)).lines() {
        assert!(line.chars().count() <= 40, "{line}");
    }
}

#[test]
fn the_report_is_data_with_stable_names() {
    let compiled = Compiler::new(Catalogue::builtin())
        .compile(&items(), &target())
        .unwrap();
    let report = serde_json::to_value(&compiled.report).unwrap();
    let names: Vec<&String> = report.as_object().unwrap().keys().collect();
    let expected = [
        "version",
        "target",
        "segments",
        "totals",
        "omitted",
        "rewritten",
        "removed_tools",
        "readable",
        "repairs",
        "losses",
        "settings",
        "epoch",
        "cache",
        "payload",
    ];
    assert_eq!(names, expected);
    let segment = report["segments"][0].as_object().unwrap();
    let names: Vec<&String> = segment.keys().collect();
    let expected = [
        "band",
        "source",
        "label",
        "items",
        "tokens",
        "low",
        "omitted_tokens",
        "share",
        "verdict",
        "rule",
    ];
    assert_eq!(names, expected);
    assert_eq!(report["epoch"]["reason"], "first");
    assert_eq!(report["rewritten"][0]["how"], "repeated");
}

#[test]
fn models_come_from_the_catalogue() {
    let compiler = Compiler::new(Catalogue::builtin());
    for (format, model) in [
        (Format::OpenAiChat, "gpt-4o"),
        (Format::OpenAiResponses, "gpt-4o"),
        (Format::Anthropic, "claude-opus-4-8"),
        (Format::Gemini, "gemini-2.5-pro"),
    ] {
        let compiled = compiler
            .compile(&items(), &Target::new(format, model))
            .unwrap();
        let target = &compiled.report.target;
        assert!(
            target.reserve > 0 && target.reserve <= target.window / 8,
            "{target:?}"
        );
        assert_eq!(
            compiled.report.totals.exact,
            target.encoding == "o200k_base"
        );
        assert!(compiled.report.omitted.is_empty());
    }
    let error = compiler
        .compile(&items(), &Target::anthropic("claude-opus-48"))
        .unwrap_err();
    let CompileError::Catalogue(CatalogueError::UnknownModel { similar: near, .. }) = error else {
        panic!("{error}");
    };
    assert!(
        near.iter().any(|name| name == "claude-opus-4-8"),
        "{near:?}"
    );
}

#[test]
fn a_parameter_wins_over_the_option_it_names() {
    let compiler = Compiler::new(Catalogue::builtin());
    let raw = |text: &str| Raw::parse(text).unwrap();
    let own = RequestOptions {
        max_output_tokens: Some(900),
        temperature: Some(1.into()),
        ..RequestOptions::default()
    };
    for (format, model) in [
        (Format::OpenAiChat, "gpt-4o"),
        (Format::OpenAiResponses, "gpt-4o"),
        (Format::Anthropic, "claude-opus-4-8"),
        (Format::Gemini, "gemini-2.5-pro"),
    ] {
        let target = Target::new(format, model)
            .param("max_tokens", raw("555"))
            .param("temperature", raw("0.25"))
            .options(own.clone());
        let compiled = compiler.compile(&items(), &target).unwrap();
        let json = compiled.payload.to_json();
        assert_eq!(json.matches(":555").count(), 1, "{json}");
        assert!(json.contains(":0.25") && !json.contains(":900"), "{json}");
        assert_eq!(compiled.report.target.reserve, 555);
    }
    let odd = Target::openai_chat("gpt-4o").param("max_tokens", raw("\"many\""));
    let error = compiler.compile(&items(), &odd).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parameter `max_tokens`: is written by the compile and cannot be set to this"
    );
}

#[test]
fn a_parameter_is_merged_into_what_the_payload_says() {
    let raw = |text: &str| Raw::parse(text).unwrap();
    let own = RequestOptions {
        max_output_tokens: Some(900),
        temperature: Some(1.into()),
        reasoning: Some(ReasoningOptions {
            effort: Some("low".to_owned()),
            summary: Some("auto".to_owned()),
            ..ReasoningOptions::default()
        }),
        response_format: Some(ResponseFormat::JsonObject),
        ..RequestOptions::default()
    };
    type Case<'a> = (Format, &'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 5] = [
        (
            Format::Gemini,
            "gemini-2.5-pro",
            &[(
                "generationConfig",
                r#"{"temperature":0.5,"maxOutputTokens":55,"topK":3}"#,
            )],
            &[
                r#""temperature":0.5,"maxOutputTokens":55,"responseMimeType":"application/json""#,
                r#""topK":3}"#,
            ],
        ),
        // The same field twice: the later one is laid over the earlier.
        (
            Format::OpenAiResponses,
            "gpt-5.4",
            &[
                ("reasoning", r#"{"effort":"high"}"#),
                ("text", r#"{"verbosity":"low"}"#),
                ("text", r#"{"verbosity":"high"}"#),
            ],
            &[
                r#""reasoning":{"effort":"high","summary":"auto"}"#,
                r#""text":{"format":{"type":"json_object"},"verbosity":"high"}"#,
            ],
        ),
        // Objects of another type, and what is no object, stand alone.
        (
            Format::OpenAiChat,
            "gpt-5.4",
            &[
                ("response_format", r#"{"type":"text"}"#),
                ("reasoning_effort", "null"),
            ],
            &[
                r#""response_format":{"type":"text"}"#,
                r#""reasoning_effort":null"#,
            ],
        ),
        (
            Format::Anthropic,
            "claude-sonnet-5",
            &[("output_config", r#"{"effort":"max"}"#), ("top_k", "7")],
            &[r#""effort":"max""#, r#","top_k":7}"#],
        ),
        (
            Format::OpenAiChat,
            "gpt-5.4",
            &[("stop", "\"}]\"")],
            &[r#","stop":"}]"}"#],
        ),
    ];
    let compiler = Compiler::new(Catalogue::builtin());
    for (format, model, params, expected) in cases {
        let mut target = Target::new(format, model).options(own.clone());
        for (name, value) in params {
            target = target.param(*name, raw(value));
        }
        let compiled = compiler.compile(&items(), &target).unwrap();
        let json = compiled.payload.to_json();
        assert!(Raw::parse(json.clone()).is_ok(), "{json}");
        for words in expected {
            assert_eq!(json.matches(words).count(), 1, "{words}: {json}");
        }
        if format == Format::Gemini {
            assert_eq!(compiled.report.target.reserve, 55);
        }
    }
}

#[test]
fn a_model_of_another_provider_is_refused() {
    let compiler = Compiler::new(Catalogue::builtin());
    for (format, model, fits) in [
        (Format::Gemini, "gpt-5.4", false),
        (Format::Gemini, "deepseek-chat", false),
        (Format::Anthropic, "gpt-5.4", false),
        (Format::Anthropic, "gemini-2.5-pro", false),
        (Format::OpenAiResponses, "claude-opus-4-8", false),
        (Format::OpenAiChat, "claude-opus-4-8", true),
        (Format::OpenAiChat, "gemini-2.5-pro", true),
        (Format::Anthropic, "deepseek-chat", true),
        (Format::Gemini, "gemma-3-27b-it", true),
    ] {
        match compiler.compile(&items(), &Target::new(format, model)) {
            Ok(_) => assert!(fits, "{model} behind {format}"),
            Err(CompileError::Catalogue(error @ CatalogueError::WrongProvider { .. })) => {
                assert!(!fits, "{model} behind {format}: {error}");
                let text = error.to_string();
                assert!(text.contains(format.as_str()), "{text}");
            }
            Err(other) => panic!("{model} behind {format}: {other}"),
        }
    }
}

#[test]
fn a_gateway_is_described_in_a_models_file() {
    let catalogue = Catalogue::builtin()
        .with_json(r#"{"models":[{"id":"gpt-5.4","provider":""}]}"#)
        .unwrap();
    let target = Target::gemini("gpt-5.4");
    assert!(Compiler::new(&catalogue).compile(&items(), &target).is_ok());
}
