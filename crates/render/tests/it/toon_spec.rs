//! The TOON specification's own encoding fixtures (MIT, licence beside them).
//!
//! All of them go through the encoder. Those that the renderer can be asked for go through the
//! renderer as well: an object is the list of fragments named by its keys. The others do not apply
//! to it: a root that is no object, nulls (the renderer leaves them out), other delimiters and
//! indentations (it writes commas and two spaces).

use contexture_ir::{Fragment, FragmentData};
use contexture_render::{Renderer, ToonRenderer};
use serde_json::Value;
use toon_format::{Delimiter, EncodeOptions, encode};

const FILES: [&str; 9] = [
    include_str!("../fixtures/toon/encode/arrays-nested.json"),
    include_str!("../fixtures/toon/encode/arrays-objects.json"),
    include_str!("../fixtures/toon/encode/arrays-primitive.json"),
    include_str!("../fixtures/toon/encode/arrays-tabular.json"),
    include_str!("../fixtures/toon/encode/delimiters.json"),
    include_str!("../fixtures/toon/encode/objects-keyed.json"),
    include_str!("../fixtures/toon/encode/objects.json"),
    include_str!("../fixtures/toon/encode/primitives.json"),
    include_str!("../fixtures/toon/encode/whitespace.json"),
];

fn options(case: &Value) -> EncodeOptions {
    let options = EncodeOptions::new();
    let options = match case["options"]["delimiter"].as_str() {
        Some("\t") => options.with_delimiter(Delimiter::Tab),
        Some("|") => options.with_delimiter(Delimiter::Pipe),
        _ => options,
    };
    match case["options"]["indentSize"].as_u64() {
        Some(size) => options.with_spaces(usize::try_from(size).unwrap()),
        None => options,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

/// Data as it is, also where it looks like a fragment.
fn plain(value: &Value) -> FragmentData {
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(map) => {
            contexture_ir::object(map.iter().map(|(key, value)| (key.as_str(), plain(value))))
        }
        leaf => FragmentData::try_from(leaf.clone()).unwrap(),
    }
}

#[test]
fn encoding_follows_the_specification() {
    let (mut encoded, mut rendered) = (0, 0);
    for file in FILES {
        let file: Value = serde_json::from_str(file).unwrap();
        for case in file["tests"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            let expected = case["expected"].as_str().unwrap();
            let text = encode(&case["input"], &options(case)).unwrap();
            assert_eq!(text, expected, "{name}");
            encoded += 1;
            let Value::Object(map) = &case["input"] else {
                continue;
            };
            if has_null(&case["input"]) || options(case) != EncodeOptions::default() {
                continue;
            }
            let fragments: Vec<_> = map
                .iter()
                .map(|(key, value)| Fragment::new(key.as_str(), plain(value)))
                .collect();
            assert_eq!(
                ToonRenderer::default().render(&fragments).unwrap(),
                expected,
                "{name}"
            );
            rendered += 1;
        }
    }
    assert_eq!((encoded, rendered), (173, 103));
}
