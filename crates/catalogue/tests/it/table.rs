//! The builtin table is complete and plausible.

use std::collections::BTreeMap;

use contexture_catalogue::{CacheKind, Catalogue, Encoding};

#[test]
fn every_model_is_plausible() {
    for model in Catalogue::builtin().models() {
        let name = &model.id;
        assert!(
            (4_096..=10_000_000).contains(&model.context_window),
            "{name}"
        );
        assert!(
            model
                .output_limit
                .is_some_and(|limit| limit <= model.context_window),
            "{name}"
        );
        assert!(
            model
                .input_limit
                .is_none_or(|limit| limit <= model.context_window),
            "{name}"
        );
        assert!(
            !model.provider.is_empty() && !model.family.is_empty(),
            "{name}"
        );
        assert!(model.media.is_some(), "{name}");
        let prices = &model.prices;
        // Where the source has no price there is none, which is not the same as free.
        let unpriced = prices.input.is_none() || prices.output.is_none();
        if unpriced {
            assert!(
                ["meta", "qwen"].contains(&model.provider.as_str())
                    || ["claude-fable-5-2", "claude-mythos-5-2"].contains(&name.as_str()),
                "{name}"
            );
        }
        assert!(prices.input <= prices.output, "{name}");
        if let (Some(read), Some(input)) = (prices.cache_read, prices.input) {
            assert!(read < input, "{name}");
        }
        match model.cache.kind {
            CacheKind::None => assert_eq!(model.cache.max_marks, 0, "{name}"),
            CacheKind::Explicit => assert!(model.cache.max_marks > 0, "{name}"),
            _ => {}
        }
    }
}

#[test]
fn every_model_resolves_to_itself_or_an_equal_one() {
    let catalogue = Catalogue::builtin();
    for model in catalogue.models() {
        let mut found = catalogue.resolve(&model.id).unwrap().clone();
        found.id.clone_from(&model.id);
        assert_eq!(found, *model);
    }
}

#[test]
fn encodings_follow_the_families() {
    let catalogue = Catalogue::builtin();
    for (name, expected) in [
        ("gpt-3.5-turbo", Encoding::Cl100kBase),
        ("gpt-4", Encoding::Cl100kBase),
        ("gpt-4-turbo", Encoding::Cl100kBase),
        ("gpt-4o", Encoding::O200kBase),
        ("gpt-4.1-mini", Encoding::O200kBase),
        ("o3", Encoding::O200kBase),
        ("gpt-6-sol", Encoding::O200kBase),
        ("claude-3-5-sonnet-20241022", Encoding::ClaudeV1),
        ("claude-opus-4-6", Encoding::ClaudeV1),
        ("claude-opus-4-7", Encoding::ClaudeV2),
        ("claude-sonnet-5", Encoding::ClaudeV2),
        ("gemini-2.5-pro", Encoding::Gemma3),
        ("gemini-3.1-pro-preview", Encoding::Gemma4),
        ("deepseek-chat", Encoding::Other),
    ] {
        assert_eq!(
            catalogue.resolve(name).unwrap().encoding,
            expected,
            "{name}"
        );
    }
}

#[test]
fn capabilities_follow_the_documentation() {
    let catalogue = Catalogue::builtin();
    for (name, prefill, mid_system, marks) in [
        ("claude-sonnet-4-5", true, false, 4),
        ("claude-opus-4-6", false, false, 4),
        ("claude-opus-4-8", false, true, 4),
        // Accepts the host's words inside a history and ignores them.
        ("claude-sonnet-5", false, false, 4),
        ("claude-sonnet-5-5", false, false, 4),
        ("gpt-5.1", false, true, 0),
        ("gpt-5.6", false, true, 4),
        ("gemini-2.5-pro", false, false, 0),
    ] {
        let model = catalogue.resolve(name).unwrap();
        let can = model.capabilities;
        assert_eq!(
            (
                can.prefill,
                can.mid_conversation_system,
                model.cache.max_marks
            ),
            (prefill, mid_system, marks),
            "{name}"
        );
    }
}

/// platform.claude.com/docs/en/build-with-claude/preserved-thinking
#[test]
fn thinking_is_bound_where_the_documentation_says_so() {
    let catalogue = Catalogue::builtin();
    for (name, bound) in [
        ("claude-fable-5-1", true),
        ("claude-fable-5-2", true),
        ("claude-mythos-5-2", true),
        ("claude-opus-5-5", true),
        ("claude-sonnet-5-5", true),
        ("claude-haiku-5-5", true),
        ("claude-fable-5", false),
        ("claude-mythos-5-1", false),
        ("claude-opus-5", false),
        ("claude-sonnet-5", false),
        ("gpt-5.6", false),
        ("gemini-3.1-pro-preview", false),
    ] {
        let model = catalogue.resolve(name).unwrap();
        assert_eq!(model.capabilities.bound_thinking, bound, "{name}");
    }
}

#[test]
fn the_large_providers_are_there() {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for model in Catalogue::builtin().models() {
        *count.entry(&model.provider).or_default() += 1;
    }
    for (provider, least) in [
        ("openai", 40),
        ("anthropic", 20),
        ("google", 15),
        ("deepseek", 4),
        ("mistral", 10),
        ("qwen", 10),
        ("xai", 5),
    ] {
        assert!(count[provider] >= least, "{provider}: {count:?}");
    }
}
