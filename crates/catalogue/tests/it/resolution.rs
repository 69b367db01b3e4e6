//! Which model a name stands for.

use contexture_catalogue::{Catalogue, CatalogueError, Encoding, ModelSpec};
use proptest::prelude::*;

#[test]
fn names_resolve_by_the_documented_rules() {
    let catalogue = Catalogue::builtin();
    for (name, expected) in [
        ("gpt-5.1", "gpt-5.1"),
        ("GPT-5.1", "gpt-5.1"),
        (" gpt-5.1 ", "gpt-5.1"),
        ("gpt-5.1-2025-11-13", "gpt-5.1"),
        ("openai/gpt-5.1", "gpt-5.1"),
        ("openrouter/openai/gpt-5.1", "gpt-5.1"),
        ("gpt-4-0613", "gpt-4-0613"),
        ("gpt-4-0314", "gpt-4"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4.1-nano-2025-04-14", "gpt-4.1-nano"),
        ("claude-sonnet-5-20260901", "claude-sonnet-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-4-8@default", "claude-opus-4-8"),
        (
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
        ),
        (
            "anthropic.claude-opus-4-1-20250805-v1:0",
            "claude-opus-4-1-20250805",
        ),
        ("claude-opus-4-1", "claude-opus-4-1-20250805"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("claude-3-haiku-20240307", "claude-3-haiku"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        (
            "publishers/google/models/gemini-2.5-flash-001",
            "gemini-2.5-flash",
        ),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
        ("gemini-3-flash-preview", "gemini-3-flash-preview"),
        ("deepseek/deepseek-r1:free", "deepseek-r1"),
        (
            "meta-llama/Llama-3.3-70B-Instruct",
            "Llama-3.3-70B-Instruct",
        ),
        ("mistral-medium-3.5", "mistral-medium-3.5"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
    ] {
        let model = catalogue.resolve(name);
        assert_eq!(
            model.map(|model| model.id.as_str()).ok(),
            Some(expected),
            "{name}"
        );
    }
}

#[test]
fn unknown_names_are_refused_with_near_matches() {
    let catalogue = Catalogue::builtin();
    for (name, expected) in [
        ("gpt-5.1-mine", None),
        ("claude-opus-48", Some("claude-opus-4-8")),
        ("gemini-2.5-fash", Some("gemini-2.5-flash")),
        ("claud-sonnet-5", Some("claude-sonnet-5")),
        ("", None),
        ("///", None),
        ("完全に別のモデル", None),
    ] {
        match catalogue.resolve(name) {
            Err(CatalogueError::UnknownModel { similar: near, .. }) => match expected {
                Some(expected) => assert_eq!(near[0], expected, "{name}"),
                None => assert!(near.len() <= 3, "{name}"),
            },
            other => panic!("{name}: {other:?}"),
        }
    }
    let message = catalogue.resolve("gpt-5.11").unwrap_err().to_string();
    assert!(
        message.starts_with("unknown model \"gpt-5.11\" (similar: gpt-5.1, ")
            && message.ends_with("; name its window, or describe it in a models file"),
        "{message}"
    );
}

#[test]
fn huge_names_are_cut_in_the_error() {
    let error = Catalogue::builtin()
        .resolve(&"x".repeat(1_000_000))
        .unwrap_err();
    assert!(error.to_string().len() < 500);
}

#[test]
fn a_model_by_hand_is_found_first() {
    let mut model = ModelSpec::new("gpt-5.1", 1_000, Encoding::Other);
    model.aliases.push("house-model".to_owned());
    let catalogue = Catalogue::builtin().with_model(model);
    assert_eq!(
        catalogue
            .resolve("gpt-5.1-2025-11-13")
            .unwrap()
            .context_window,
        1_000
    );
    assert_eq!(catalogue.resolve("House.Model").unwrap().id, "gpt-5.1");
    assert_eq!(
        catalogue.models().len(),
        Catalogue::builtin().models().len()
    );
}

#[test]
fn encodings_parse_by_name() {
    for encoding in Encoding::ALL {
        assert_eq!(encoding.to_string().parse(), Ok(encoding));
    }
    assert_eq!("claude".parse(), Ok(Encoding::ClaudeV2));
    assert_eq!("gemini".parse(), Ok(Encoding::Gemma4));
    let error = "p50k_base".parse::<Encoding>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown encoding \"p50k_base\"; known are o200k_base, cl100k_base, claude-v1, claude-v2, gemma3, gemma4, other"
    );
}

proptest! {
    #[test]
    fn any_name_is_answered(name in "\\PC{0,80}|[-a-z0-9./:@_]{0,60}") {
        if let Ok(model) = Catalogue::builtin().resolve(&name) {
            prop_assert!(!model.id.is_empty());
        }
    }

    #[test]
    fn dates_do_not_matter(index in 0usize..150, date in "20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2}") {
        let catalogue = Catalogue::builtin();
        let model = catalogue.models().nth(index).unwrap();
        let dated = format!("{}-{date}", model.id);
        prop_assert_eq!(&catalogue.resolve(&dated).unwrap().context_window, &model.context_window);
    }
}
