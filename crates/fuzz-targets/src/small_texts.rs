//! Smaller languages: fragments, skill files, models files, tool arguments, queries of searches.

use std::fs;

use contexture_catalogue::Catalogue;
use contexture_condense::ReadCall;
use contexture_ir::{
    Fragment, FragmentRegistry, Raw, fragments_from_value, parse_fragments, to_serialized,
};
use contexture_layers::builtin::{LoadedSkills, Skill, SkillFolders};
use contexture_render::{Format as RenderFormat, Grouping};
use contexture_store::rules::{Query, match_all};
use contexture_tools::{Call, SchemaValidator, arguments::parse_arguments};

use crate::input::{assert_bounded, assert_json, join_choice, split_text_choice};

/// Fragments as JSON: written and read again as the same, and rendered in every format.
pub(crate) fn check_fragments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(fragments) = parse_fragments(text) else {
        return;
    };
    for fragment in &fragments {
        check_fragment(fragment);
    }
    for format in RenderFormat::ALL {
        for grouping in [Grouping::Off, Grouping::Children, Grouping::Everywhere] {
            // A format may refuse what it cannot hold, but must not swell.
            if let Ok(rendered) = format.renderer(grouping).render(&fragments) {
                assert_bounded(format.as_str(), text.len(), rendered.len());
            }
        }
    }
}

fn check_fragment(fragment: &Fragment) {
    let Ok(json) = fragment.to_json() else {
        return;
    };
    let again = Fragment::from_json(&json.to_string()).unwrap();
    assert_eq!(again.to_json().ok(), Some(json));
    let registry = FragmentRegistry::new();
    let Ok(document) = to_serialized(fragment, &registry) else {
        return;
    };
    let list = serde_json::Value::Array(vec![document.clone()]);
    let again =
        fragments_from_value(list, &registry).unwrap_or_else(|error| panic!("{error}: {document}"));
    let twice: Vec<_> = again
        .iter()
        .map(|fragment| to_serialized(fragment, &registry).unwrap())
        .collect();
    assert_eq!(twice, [document]);
}

/// Fragments of most kinds.
pub(crate) fn fragments() -> Vec<Vec<u8>> {
    let texts = [
        r#"[{"type":"role","content":"You answer briefly."},{"name":"unit","data":"cents"}]"#,
        r#"[{"type":"hint","text":"h"},{"type":"term","name":"t","definition":"d"},{"type":"guardrail","rule":"r","reason":"w","action":"a"},{"type":"example","question":"q","answer":"a","note":"n"}]"#,
        r#"[{"name":"a b<c>","data":{"x":[1,null,true,{"y":"]]>"}],"&":-0.5},"id":"i","metadata":{"m":1},"persist":false}]"#,
        r#"[{"name":"list","data":[{"name":"item","data":1},{"name":"item","data":"two"},[[]]]}]"#,
        r#"[{"name":"user","data":"hi","id":"m"},{"name":"assistant","data":{"parts":[{"type":"text","text":"yo"}]}}]"#,
        "[]",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// A skill's file: what was read is in the file, and is read again from one that is written anew.
pub(crate) fn check_skill(data: &[u8]) {
    let loaded = load_skill(data);
    assert_eq!(loaded.skills.len() + loaded.refused.len(), 1);
    let Some(skill) = loaded.skills.first() else {
        return;
    };
    let text = std::str::from_utf8(data).unwrap();
    // Line ends and white space around the instructions are not kept.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words(text).contains(&words(&skill.instructions)),
        "{:?} is not in {text:?}",
        skill.instructions
    );
    let again = load_skill(write_skill(skill).as_bytes());
    let again = again.skills.first();
    assert_eq!(
        again.map(|again| (&again.description, &again.license, &again.metadata)),
        Some((&skill.description, &skill.license, &skill.metadata)),
        "{text}"
    );
    assert_eq!(
        again.map(|again| words(&again.instructions)),
        Some(words(&skill.instructions))
    );
}

/// Loads a folder with this file in it.
fn load_skill(data: &[u8]) -> LoadedSkills {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("skill");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), data).unwrap();
    SkillFolders::new().with_folder(root.path()).load_skills()
}

fn write_skill(skill: &Skill) -> String {
    // A JSON string is a quoted scalar of YAML.
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let mut text = format!(
        "---\nname: skill\ndescription: {}\n",
        quoted(&skill.description)
    );
    if let Some(license) = &skill.license {
        text.push_str(&format!("license: {}\n", quoted(license)));
    }
    if !skill.metadata.is_empty() {
        text.push_str("metadata:\n");
    }
    for (key, value) in &skill.metadata {
        text.push_str(&format!("  {}: {}\n", quoted(key), quoted(value)));
    }
    text + "---\n" + &skill.instructions + "\n"
}

/// Files of skills, usual and odd.
pub(crate) fn skill_files() -> Vec<Vec<u8>> {
    let texts = [
        "---\nname: skill\ndescription: What it does.\n---\nDo it.\n",
        "---\r\nname: \"skill\"\r\ndescription: >\r\n  folded\r\n  text\r\nlicense: MIT\r\ncompatibility: any\r\nmetadata:\r\n  version: 1.0\r\n  author: me\r\nallowed-tools: Read Bash(git:*)\r\n---\r\n\r\n# Title\r\n---\r\n",
        "\u{feff}---\nname: skill\ndescription: |\n  a: b\nallowed-tools: [Read, \"Bash(x)\"]\nunknown: {a: [1, ~]}\n---",
        "---\nname: &a skill\ndescription: *a\n---\n{{ARGUMENTS}} $1\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// A models file in JSON or TOML: its models are found by their names, and are written and read again as the same.
pub(crate) fn check_models_file(data: &[u8]) {
    let Some((is_toml, text)) = split_text_choice(&[false, true], data) else {
        return;
    };
    let empty = Catalogue::default();
    let read = if is_toml {
        empty.with_toml(text)
    } else {
        empty.with_json(text)
    };
    let Ok(catalogue) = read else {
        return;
    };
    for model in catalogue.models() {
        assert_eq!(catalogue.resolve(&model.id).ok(), Some(model));
        let json = serde_json::json!({ "models": [model] }).to_string();
        let again = empty
            .with_json(&json)
            .unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(again.resolve(&model.id).ok(), Some(model), "{json}");
        assert_bounded("a model", text.len(), json.len());
    }
}

/// Models files with all kinds of fields.
pub(crate) fn models_files() -> Vec<Vec<u8>> {
    let builtin = Catalogue::builtin();
    let models: Vec<_> = builtin
        .models()
        .step_by(builtin.models().len() / 12)
        .collect();
    let mut inputs: Vec<Vec<u8>> = models
        .iter()
        .map(|model| join_choice(0, serde_json::json!({ "models": [model] }).to_string()))
        .collect();
    inputs.push(join_choice(
        1,
        "[[models]]\nid = \"own\"\ncontext_window = 4096\nencoding = \"o200k_base\"\naliases = [\"o\"]\n[[models]]\nid = \"copy\"\nlike = \"own\"\n[models.prices]\ninput = 1.25\n",
    ));
    inputs
}

/// Arguments of tool calls as models leave them, in the first line; a schema in the rest.
pub(crate) fn check_tool_arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    check_arguments(first);
    check_arguments(text);
    let _ = Call::from_json(first);
    let _ = ReadCall::parse(first);
    // A schema of a stranger's tool, applied to what a model wrote.
    let (Ok(schema), Ok(value)) = (Raw::parse(rest), Raw::parse(first)) else {
        return;
    };
    if let Ok(validator) = SchemaValidator::new(&schema) {
        let faults = validator.check_arguments(&value);
        let is_fit = faults.is_ok_and(|faults| faults.is_empty());
        assert_eq!(is_fit, validator.check_value(&value).is_ok());
    }
}

/// What was mended is a JSON object that needs no mending.
fn check_arguments(text: &str) {
    let Ok(read) = parse_arguments(text) else {
        return;
    };
    let json = read.raw.get();
    assert_json("arguments", json);
    assert!(json.starts_with('{'), "{json}");
    assert_bounded("arguments", text.len(), json.len());
    assert!(read.issues.iter().all(|issue| issue.offset <= text.len()));
    let again = parse_arguments(json).unwrap();
    assert_eq!(again.raw.get(), json);
    // A key that stands twice is kept, and is told each time.
    let repeated = again.issues.iter();
    assert!(
        repeated
            .map(|issue| issue.kind)
            .all(|kind| kind == contexture_tools::IssueKind::RepeatedKey),
        "{json}: {:?}",
        again.issues
    );
}

/// Arguments with every fault that is mended, schemas, calls of the built-in tools.
pub(crate) fn tool_arguments() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"a":1,"b":{"c":1,"c":2},"a":2}"#,
        "{a: 1, 'b': 'it \"is\"', \"c\": [1,2,], d: True, e: None",
        "```json\n{\"a\": \"b\n\tc\\q\"}\n```",
        "\"{\\\"a\\\":1}\"",
        "{\"a\":1 \"b\":2}}",
        "{\"a\":{\"b\":[\"cut",
        "{\"open\":\"two\"}\n{\"type\":\"object\",\"properties\":{\"open\":{\"type\":\"integer\",\"minimum\":1}},\"required\":[\"open\"],\"additionalProperties\":false}",
        "[\"x\"]\n{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}},\"items\":{\"anyOf\":[{\"pattern\":\"^(a+)+$\"},{\"$ref\":\"#/$defs/a\"}]}}",
        r#"{"uri":"context://vfs/0123456789abcdef0123456789abcdef","pattern":"fo+","regex":true,"context":2,"limit":5,"offset":1,"column":3}"#,
        r#"{"query":"\"two words\" pre*","limit":3}"#,
        r#"{"name":"files__read","arguments":"{\"path\":\"a\"}"}"#,
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// A query in the first line and a text to search in the rest: matches are places of the text, in order.
pub(crate) fn check_query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (query, text) = text.split_once('\n').unwrap_or((text, text));
    let parsed = Query::parse(query);
    assert_eq!(Query::parse(query), parsed);
    // However long the query is, an index is asked for so many terms only.
    assert!(parsed.index_conditions().len() <= 64);
    let Some(found) = match_all(&parsed, text) else {
        return;
    };
    let mut end = 0;
    for place in &found.places {
        assert!(end <= place.start && place.start < place.end, "{found:?}");
        assert!(text.get(place.clone()).is_some(), "{found:?}");
        end = place.end;
    }
}

/// Queries in several scripts, with texts that match.
pub(crate) fn queries() -> Vec<Vec<u8>> {
    let texts = [
        "red \"brown fox\" qu*\nThe quick brown Fox is red-brown, quickly.",
        "Straße İstanbul ﬁn*\nDIE STRASSE nach istanbul: final",
        "搜索 \"検索 する\"*\n全文搜索 検索するとき",
        "src/main.rs foo_bar::Baz 3.14\nin src/main.rs: foo_bar::Baz = 3.14",
        "\"\" * \"*\" \"a\n a",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}
