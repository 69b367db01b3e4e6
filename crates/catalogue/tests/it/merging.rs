//! A user's models file over the builtin one.

use contexture_catalogue::{Catalogue, CatalogueError, Encoding, Price};

#[test]
fn named_fields_change_and_the_rest_stays() {
    let builtin = Catalogue::builtin();
    let before = builtin.resolve("claude-opus-4-8").unwrap();
    let merged = builtin
        .with_json(
            r#"{"models": [{"id": "claude-opus-4-8", "context_window": 200000,
                "prices": {"input": 1.5, "cache_write_1h": null}, "cache": {"minimum_tokens": 7}}]}"#,
        )
        .unwrap();
    let after = merged.resolve("claude-opus-4-8").unwrap();
    let mut expected = before.clone();
    expected.context_window = 200_000;
    expected.prices.input = Some(Price::from_micro_dollars_per_million(1_500_000));
    expected.prices.cache_write_1h = None;
    expected.cache.minimum_tokens = Some(7);
    assert_eq!(*after, expected);
    assert_eq!(merged.models().len(), builtin.models().len());
}

#[test]
fn json_and_toml_say_the_same() {
    let json = r#"{
        "media": {"ours": {"image": {"kind": "fixed", "low": 1, "medium": 2, "high": 3, "original": 4},
            "page": {"low": 1, "count": 2, "high": 3}}},
        "models": [
            {"id": "ours-1", "like": "gpt-5.1", "media": "ours", "aliases": ["o1-like"]},
            {"id": "ours-2", "like": "ours-1", "context_window": 9},
            {"id": "ours-3", "context_window": 10, "encoding": "other", "prices": {"input": "0.1"}}]}"#;
    let toml = r#"
        [media.ours]
        image = { kind = "fixed", low = 1, medium = 2, high = 3, original = 4 }
        page = { low = 1, count = 2, high = 3 }
        [[models]]
        id = "ours-1"
        like = "gpt-5.1"
        media = "ours"
        aliases = ["o1-like"]
        [[models]]
        id = "ours-2"
        like = "ours-1"
        context_window = 9
        [[models]]
        id = "ours-3"
        context_window = 10
        encoding = "other"
        prices.input = "0.1"
        "#;
    let json = Catalogue::builtin().with_json(json).unwrap();
    let toml = Catalogue::builtin().with_toml(toml).unwrap();
    assert!(json.models().eq(toml.models()));
    let ours = json.resolve("ours-2").unwrap();
    assert_eq!(ours.encoding, Encoding::O200kBase);
    assert_eq!(ours.media.as_ref(), json.media_rules("ours"));
    assert!(ours.aliases.is_empty());
    assert_eq!(json.resolve("O1.like").unwrap().id, "ours-1");
    assert_eq!(json.models().last().unwrap().context_window, 10);
}

#[test]
fn errors_name_the_model_and_the_remedy() {
    let check = |text: &str, expected: &str| {
        let error = Catalogue::builtin().with_json(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    };
    check(
        r#"{"models": [{"id": "m"}]}"#,
        "model \"m\" in the models file: missing field `context_window`",
    );
    check(r#"{"models": [{"context_window": 5}]}"#, "\"number 1\"");
    check(
        r#"{"models": [{"id": "m", "context_window": 0, "encoding": "other"}]}"#,
        "context_window is 0",
    );
    check(
        r#"{"models": [{"id": " ", "context_window": 1, "encoding": "other"}]}"#,
        "the id is empty",
    );
    check(
        r#"{"models": [{"id": "m", "context_window": 1, "encoding": "p50k"}]}"#,
        "unknown variant `p50k`",
    );
    check(
        r#"{"models": [{"id": "gpt-5.1", "context_windw": 1}]}"#,
        "unknown field `context_windw`",
    );
    check(
        r#"{"models": [{"id": "gpt-5.1", "media": "nope"}]}"#,
        "known are anthropic-1568, ",
    );
    check(
        r#"{"models": [{"id": "m", "like": "nope"}]}"#,
        "like \"nope\", which is unknown",
    );
    check(
        r#"{"models": [{"id": "m", "like": 5}]}"#,
        "must be the name of a model",
    );
    check(
        r#"{"models": [{"id": "gpt-5.1", "prices": {"input": -1}}]}"#,
        "price \"-1\", expected dollars",
    );
    check("{\"models\": [", "not readable as JSON");
    check(r#"{"model": []}"#, "not readable as JSON");
    check(&"[".repeat(100_000), "not readable as JSON");
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(matches!(
        Catalogue::builtin().with_toml(&deep),
        Err(CatalogueError::Syntax { format: "TOML", .. })
    ));
}
