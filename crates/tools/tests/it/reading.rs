//! Arguments as models and cut streams leave them; schemas as strangers write them.

use contexture_ir::Raw;
use contexture_tools::{IssueKind, SchemaError, SchemaValidator, arguments};
use proptest::prelude::*;

use IssueKind::*;

#[track_caller]
fn check(text: &str, expected: &str, issues: &[IssueKind]) {
    let read = arguments::parse_arguments(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(read.raw.get(), expected, "{text}");
    let kinds: Vec<IssueKind> = read.issues.iter().map(|issue| issue.kind).collect();
    assert_eq!(kinds, issues, "{text}");
    serde_json::from_str::<Raw>(expected).unwrap();
}

#[test]
fn what_is_valid_stays_as_it_is() {
    for text in [
        r#"{ "a" : 1.50, "b":[ ] }"#,
        r#"{"id":12345678901234567890123,"x":1e400}"#,
        r#"{"s":"\u00e9\ud83d","t":"```"}"#,
    ] {
        check(text, text, &[]);
    }
    check(" {\"a\":1}\n", r#"{"a":1}"#, &[]);
    check("{}", "{}", &[]);
}

#[test]
fn what_is_odd_is_told() {
    check("", "{}", &[Empty]);
    check(" \u{FEFF}\n", "{}", &[Empty]);
    check("null", "{}", &[Empty]);
    check(
        r#"{"a":1,"b":{"c":1,"c":2},"a":2}"#,
        r#"{"a":1,"b":{"c":1,"c":2},"a":2}"#,
        &[RepeatedKey, RepeatedKey],
    );
    check(r#""{\"a\":1}""#, r#"{"a":1}"#, &[DoublyEncoded]);
}

#[test]
fn what_has_one_reading_is_mended() {
    check(r#"{"a":1,}"#, r#"{"a":1}"#, &[TrailingComma]);
    check(
        r#"{"a":[1,2,],"b":3 , }"#,
        r#"{"a":[1,2],"b":3}"#,
        &[TrailingComma, TrailingComma],
    );
    check(r#"{"a":1 "b":2}"#, r#"{"a":1,"b":2}"#, &[MissingComma]);
    check(
        "{a: 1, $b-c.d: 2, été: 3}",
        r#"{"a":1,"$b-c.d":2,"été":3}"#,
        &[UnquotedKey, UnquotedKey, UnquotedKey],
    );
    check(
        r#"{'a': 'it "is"', "b": 'x\'y'}"#,
        r#"{"a":"it \"is\"","b":"x'y"}"#,
        &[UnquotedKey, SingleQuotes, SingleQuotes],
    );
    check(
        r#"{"a": True, "b": None, "c": False, "d": undefined}"#,
        r#"{"a":true,"b":null,"c":false,"d":null}"#,
        &[ForeignLiteral; 4],
    );
    check("```json\n{\"a\":1}\n```", r#"{"a":1}"#, &[CodeFence]);
    check("```\n{\"a\":1}", r#"{"a":1}"#, &[CodeFence]);
    check(
        "{\"a\":\"x\ny\tz\",\"b\":\"\n\"}",
        r#"{"a":"x\ny\tz","b":"\n"}"#,
        &[ControlCharacter, ControlCharacter],
    );
    check(
        r#"{"path":"C:\Work\data","b":1,}"#,
        r#"{"path":"C:\\Work\\data","b":1}"#,
        &[BadEscape, BadEscape, TrailingComma],
    );
    check(r#"{"a":"it\'s"}"#, r#"{"a":"it's"}"#, &[BadEscape]);
    check(
        "{\u{a0}\"a\":\u{3000}1}",
        r#"{"a":1}"#,
        &[ForeignSpace, ForeignSpace],
    );
    check(r#"{"a":1}}"#, r#"{"a":1}"#, &[ExtraBracket]);
    check(
        r#"{"a":12345678901234567890123,}"#,
        r#"{"a":12345678901234567890123}"#,
        &[TrailingComma],
    );
    check(
        r#"{"a":1,"a":2,}"#,
        r#"{"a":1,"a":2}"#,
        &[RepeatedKey, TrailingComma],
    );
}

#[test]
fn what_was_cut_off_is_closed_and_said() {
    check("{", "{}", &[CutBrackets]);
    check(r#"{"a"#, "{}", &[CutMember, CutBrackets]);
    check(r#"{"a":1,"b"#, r#"{"a":1}"#, &[CutMember, CutBrackets]);
    check(r#"{"a":1,"b":"#, r#"{"a":1}"#, &[CutMember, CutBrackets]);
    check(r#"{"a":1,"b":tr"#, r#"{"a":1}"#, &[CutMember, CutBrackets]);
    check(r#"{"a":1,"b":-"#, r#"{"a":1}"#, &[CutMember, CutBrackets]);
    check(
        r#"{"a":[1,{"b":"x\"#,
        r#"{"a":[1,{"b":"x"}]}"#,
        &[CutString, CutBrackets, CutBrackets, CutBrackets],
    );
    check(r#"{"a":"\u00"#, r#"{"a":""}"#, &[CutString, CutBrackets]);
    check(r#"{"n": 12"#, r#"{"n":12}"#, &[CutNumber, CutBrackets]);
    check(r#"{"n": 1."#, "{}", &[CutMember, CutBrackets]);
    check(
        r#"{"a":[1,2.,"#.trim_end_matches(".,"),
        r#"{"a":[1,2]}"#,
        &[CutNumber, CutBrackets, CutBrackets],
    );
    check(r#"{"a":1,"#, r#"{"a":1}"#, &[TrailingComma, CutBrackets]);
    let whole = |text: &str| arguments::parse_arguments(text).unwrap().is_complete();
    assert!(whole("{a:1}") && whole("") && !whole(r#"{"a":1"#));
}

#[test]
fn what_would_be_guessed_is_refused() {
    for (text, expected) in [
        ("[]", "the arguments are to be an object"),
        ("7", "the arguments are to be an object"),
        ("\"text\"", "the arguments are to be an object"),
        ("text", "byte 0: expected an object"),
        (
            r#"{"a":1}{"a":2}"#,
            "byte 7: expected the end of the arguments",
        ),
        (r#"{"a":Paris}"#, "byte 5: expected a value"),
        (r#"{"a":NaN}"#, "byte 5: expected a value"),
        (r#"{"a":007}"#, "byte 5: expected a number"),
        (r#"{"a":1,,"b":2}"#, "byte 7: expected"),
        (r#"{"a" 1}"#, "byte 5: expected `:`"),
        (r#"{1:2}"#, "byte 1: expected a key"),
        ("{\"a\":[1}", "byte 7: expected a value or its end"),
    ] {
        let error = arguments::parse_arguments(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for deep in [
        "{\"a\":".repeat(5_000),
        "[".repeat(5_000),
        format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000)),
    ] {
        let text = format!("{{\"a\":{deep}");
        arguments::parse_arguments(&text).unwrap_err();
    }
    let many = format!("{{{}}}", "a:1,".repeat(2_000));
    let error = arguments::parse_arguments(&many).unwrap_err().to_string();
    assert!(error.contains("1000 faults"), "{error}");
}

/// Texts of what arguments are made of, whole and broken.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[{}\\[\\]:,\"'`\\\\]{1,3}",
        "true|False|None|nul|undefined|NaN",
        "-?[0-9]{1,25}(\\.[0-9]*)?([eE][+-]?[0-9]*)?",
        "\"[a-c\\\\\"'\n\u{e9}]{0,6}\"",
        "\\\\u[0-9a-f]{0,4}",
        "[a-z_$]{1,4}:?",
        "\\PC{1,3}",
        " |\n|\t|\u{FEFF}|```json|```",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Any JSON value, as text.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,6}|[\"\\\\\n']{0,4}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec(("\\PC{0,4}", inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// No text does harm; what is read is an object, and reading that again changes nothing.
    #[test]
    fn hostile_text_is_read_or_refused(text in hostile(), brace in any::<bool>()) {
        let text = if brace { format!("{{{text}") } else { text };
        if let Ok(read) = arguments::parse_arguments(&text) {
            prop_assert!(read.raw.fields().is_some());
            let again = arguments::parse_arguments(read.raw.get()).unwrap();
            prop_assert_eq!(&again.raw, &read.raw);
            prop_assert!(again.is_complete());
            if Raw::parse(text.trim()).is_err() {
                prop_assert!(!read.issues.is_empty(), "mended in silence: {}", text);
            }
        }
    }

    /// A valid object is never changed.
    #[test]
    fn valid_objects_stay(value in prop::collection::vec(("\\PC{0,4}", json()), 0..4)) {
        let object = serde_json::Value::Object(value.into_iter().collect());
        for text in [object.to_string(), format!("{object:#}")] {
            let read = arguments::parse_arguments(&text).unwrap();
            prop_assert_eq!(read.raw.get(), &text);
            prop_assert!(read.issues.is_empty());
        }
    }

    /// A document cut anywhere is either refused or said to be cut, and what is left is a part of the whole.
    #[test]
    fn cut_documents_say_so(value in prop::collection::vec(("[a-z]{1,4}", json()), 1..4), at in 1usize..400) {
        let object = serde_json::Value::Object(value.into_iter().collect());
        let text = object.to_string();
        let cut: String = text.chars().take(at.min(text.chars().count() - 1)).collect();
        if let Ok(read) = arguments::parse_arguments(&cut) {
            prop_assert!(!read.is_complete(), "{}", cut);
            let left = read.to_value();
            if let Ok(serde_json::Value::Object(left)) = left {
                for key in left.keys() {
                    prop_assert!(object.get(key).is_some(), "{} in {}", key, cut);
                }
            }
        }
    }
}

/// Doubling the text may not do much more than double the steps: read once, a hostile megabyte is over at once. What
/// would be quadratic here would take hours.
#[test]
fn a_hostile_megabyte_is_nothing() {
    for piece in [
        "{", "[", "'", "\"", "\\", "a:", "{'a':", "\"\\u", ",", "1", "\n", "```",
    ] {
        let text = format!("{{\"x\":{}", piece.repeat(1_000_000 / piece.len()));
        let _ = arguments::parse_arguments(&text);
    }
    let long = format!("{{'x':'{}", "ab\\n".repeat(250_000));
    assert_eq!(
        arguments::parse_arguments(&long).unwrap().raw.get().len(),
        1_000_008
    );
}

#[test]
fn hostile_schemas_are_bounded() {
    let checker = |text: &str| SchemaValidator::new(&Raw::parse(text).unwrap());
    let value = Raw::parse(r#"{"a":{"a":{"a":{"a":{"a":1}}}}}"#).unwrap();
    for (remote, told) in [
        (
            r#"{"$ref":"https://example.org/s.json"}"#,
            "https://example.org/s.json",
        ),
        (r#"{"$ref":"file:///etc/passwd"}"#, "/etc/passwd"),
        (
            r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##,
            "#/$defs/none",
        ),
        (r##"{"properties":{"a":{"$id":"x"}}}"##, "$id"),
        (r#"{"type":"nothing"}"#, "nothing"),
        (r#"{"properties":{"a":{"pattern":"("}}}"#, "("),
    ] {
        let error = checker(remote).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let loops = checker(
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"allOf":[{"$ref":"#/$defs/a"}]}"##,
    );
    assert_eq!(
        loops.unwrap().check_arguments(&value),
        Err(SchemaError::TooCostly)
    );
    let doubling: Vec<String> = (0..40)
        .map(|n| {
            format!(
                r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{m}"}},{{"$ref":"#/$defs/d{m}"}}]}}"##,
                m = n + 1
            )
        })
        .collect();
    let doubling = format!(
        r##"{{"$defs":{{{},"d40":{{}}}},"$ref":"#/$defs/d0"}}"##,
        doubling.join(",")
    );
    assert_eq!(
        checker(&doubling).unwrap().check_arguments(&value),
        Err(SchemaError::TooCostly)
    );
    let deeper = checker(
        r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##,
    );
    let deep = Raw::parse(format!("{}1{}", "{\"a\":".repeat(90), "}".repeat(90))).unwrap();
    assert_eq!(
        deeper.unwrap().check_arguments(&deep),
        Err(SchemaError::TooCostly)
    );
    let pattern = checker(r#"{"properties":{"a":{"pattern":"^(?=(a+)+$)(a|aa)+$"}}}"#).unwrap();
    let long = Raw::parse(format!("{{\"a\":\"{}!\"}}", "a".repeat(5_000))).unwrap();
    assert_eq!(pattern.check_arguments(&long).unwrap().len(), 1);
    // A tree as people write them is no hostile schema.
    let tree = checker(
        r##"{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"name":{"type":"string"}}}"##,
    );
    let node = r#"{"left":{"left":{},"right":{"name":1}},"right":{}}"#;
    let findings = tree
        .unwrap()
        .check_arguments(&Raw::parse(node).unwrap())
        .unwrap();
    assert_eq!(findings[0].path, "/left/right/name");
    let huge = Raw::parse(r#"{"a":1e400}"#).unwrap();
    assert!(matches!(
        checker("{}").unwrap().check_arguments(&huge),
        Err(SchemaError::Unreadable { .. })
    ));
}
