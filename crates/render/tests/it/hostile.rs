//! Law: no value, name or key breaks out of the tag, table, string or bullet it is rendered into.
//!
//! Ten thousand random trees from a hostile alphabet, others in every run, through every format and
//! back by somebody else's parser.

use std::hash::{BuildHasher as _, RandomState};

use contexture_ir::{Fragment, parse_fragments};
use contexture_render::{
    DataOptions, DocumentShape, Format, Grouping, JsonOptions, JsonRenderer, Renderer,
};
use serde_json::Value;

use crate::trees::{Random, keyed, without_nulls};

/// Ten thousand; a million with `CONTEXTURE_SOAK=1`.
fn dose() -> u64 {
    if std::env::var_os("CONTEXTURE_SOAK").is_some() {
        1_000_000
    } else {
        10_000
    }
}

/// Returns the seed of the first tree: a random one, or that of the environment variable `CONTEXTURE_TEST_SEED`.
fn first_seed() -> u64 {
    match std::env::var("CONTEXTURE_TEST_SEED") {
        Ok(given) => given.parse().unwrap(),
        Err(_) => RandomState::new().hash_one(std::process::id()),
    }
}

/// Runs `check` on every tree, with the seed and the text for the message of a failure.
fn for_each_tree(check: impl Fn(u64, &[Fragment]) -> Result<(), String>) {
    // Another part of all trees in each run; the message of a failure has the seed of its tree.
    let first = first_seed();
    for seed in (0..dose()).map(|n| first.wrapping_add(n)) {
        let fragments = Random::new(seed).fragments();
        if let Err(message) = check(seed, &fragments) {
            panic!("CONTEXTURE_TEST_SEED={seed}: {message}\n{fragments:#?}");
        }
    }
}

/// Renders, and hands over the text and the document it should hold.
fn for_each_document(
    format: Format,
    prepare: fn(&[Fragment]) -> Vec<Fragment>,
    check: impl Fn(&str, &Value) -> Result<(), String>,
) {
    for_each_tree(|seed, fragments| {
        for group_fragments in groupings(seed) {
            let options = DataOptions {
                group_fragments,
                ..DataOptions::default()
            };
            let document = options.document(&prepare(fragments)).unwrap();
            let text = format.renderer(group_fragments).render(fragments).unwrap();
            check(&text, &document).map_err(|reason| format!("{reason}\n{text}"))?;
        }
        Ok(())
    });
}

/// Each tree as it is and, by turns, with its children or everything grouped.
fn groupings(seed: u64) -> [Grouping; 2] {
    [
        Grouping::Off,
        if seed.is_multiple_of(2) {
            Grouping::Children
        } else {
            Grouping::Everywhere
        },
    ]
}

fn same(found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("found {found}\nexpected {expected}"))
    }
}

/// Equal, keys in the same order.
fn identical(found: &Value, expected: &Value) -> Result<(), String> {
    same(found, expected)?;
    same(
        &Value::String(found.to_string()),
        &Value::String(expected.to_string()),
    )
}

#[test]
fn json_is_exact() {
    for_each_document(Format::Json, <[_]>::to_vec, |text, document| {
        let found = serde_json::from_str(text).map_err(|error| error.to_string())?;
        identical(&found, document)
    });
}

#[test]
fn the_document_is_the_documented_one() {
    for_each_tree(|_, fragments| {
        identical(
            &DataOptions::default().document(fragments).unwrap(),
            &keyed(fragments),
        )
    });
}

#[test]
fn tagged_json_gives_the_fragments_back() {
    let data = DataOptions {
        shape: DocumentShape::Tagged,
        ..DataOptions::default()
    };
    let renderer = JsonRenderer::new(JsonOptions { data, pretty: true });
    for_each_tree(|_, fragments| {
        let text = renderer.render(fragments).unwrap();
        let found = parse_fragments(&text).map_err(|error| format!("{error}\n{text}"))?;
        if found == fragments {
            Ok(())
        } else {
            Err(format!("found {found:#?}"))
        }
    });
}

#[test]
fn yaml_is_exact() {
    for_each_document(Format::Yaml, <[_]>::to_vec, |text, document| {
        let found = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        identical(&found, document)
    });
}

#[test]
fn toml_is_exact_but_for_nulls() {
    for_each_document(Format::Toml, without_nulls, |text, document| {
        let found: Value = toml::from_str(text).map_err(|error| error.to_string())?;
        match document {
            Value::Array(_) => same(&found["fragments"], document),
            _ => same(&found, document),
        }
    });
}

#[test]
fn toon_is_exact_but_for_nulls() {
    for_each_document(Format::Toon, without_nulls, |text, document| {
        let found = toon_format::decode_strict(text).map_err(|error| error.to_string())?;
        identical(&found, &toon_numbers(document))
    });
}

/// TOON has one number type: a float without a fraction is an integer.
fn toon_numbers(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(toon_numbers).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), toon_numbers(value)))
            .collect(),
        Value::Number(number) => {
            toon_format::normalize(Value::Number(number.clone()).into()).into()
        }
        other => other.clone(),
    }
}

#[test]
fn xml_is_its_normal_form() {
    for_each_tree(|seed, fragments| {
        groupings(seed)
            .into_iter()
            .try_for_each(|grouping| crate::xml::check(fragments, grouping))
    });
}

#[test]
fn markdown_keeps_its_structure_and_texts() {
    for_each_tree(|_, fragments| crate::markdown::check(fragments));
}
