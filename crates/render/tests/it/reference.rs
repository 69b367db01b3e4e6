//! The reference renderers' output: XML equal byte for byte but for what is named here.

use contexture_ir::parse_fragments;
use contexture_render::{
    Grouping, MarkdownOptions, MarkdownRenderer, Renderer, XmlOptions, XmlRenderer,
};
use serde_json::Value;

/// Mixed arrays keep their order; the reference puts texts and objects before fragments.
const MIXED: &str = "<c>\n  <c>one</c>\n  <hint>h1</hint>\n  <c>two</c>\n  <hint>h2</hint>\n  <c>\n    \
                     <k>v</k>\n  </c>\n</c>";
const MIXED_GROUPED: &str = "<c>\n  <c>one</c>\n  <hints>\n    <hint>h1</hint>\n    <hint>h2</hint>\n  \
                             </hints>\n  <c>two</c>\n  <c>\n    <k>v</k>\n  </c>\n</c>";

/// What the reference loses or garbles in Markdown, by the fragments' JSON up to a unique point.
const MARKDOWN_DIFFERS: [(&str, &str); 9] = [
    (
        r#"[{"name":"a","data":{"k":[],"o":{}"#,
        "an empty object leaves a blank line",
    ),
    (
        r#"[{"name":"items","data":["x",["a","b"]"#,
        "arrays in arrays are joined by commas",
    ),
    (r#"[{"name":"users","data":[{"id""#, "[object Object]"),
    (r#"[{"name":"c","data":["one""#, "[object Object], order"),
    (
        r#"[{"name":"o","data":{"code""#,
        "a second line leaves its bullet",
    ),
    (r#"[{"name":"o","data":{"k":{"name":"f""#, "a key is lost"),
    (
        r#"[{"name":"o","data":{"users":[{"id":1}"#,
        "items run together",
    ),
    (r#"[{"name":"items","data":[{"a""#, "[object Object]"),
    (r#"[{"name":"i","data":[{"#, "[object Object]"),
];
/// The same, for empty objects in a list of fragments.
const MARKDOWN_BLANK: &str = r#"[{"name":"w","data":[{"name":"o","data":{}}"#;

fn rows() -> Vec<(String, Value)> {
    include_str!("../fixtures/reference/reference.jsonl")
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            (row["fragments"].to_string(), row)
        })
        .collect()
}

fn expected<'a>(row: &'a Value, field: &str) -> &'a str {
    row.get(format!("{field}_grouped"))
        .or_else(|| row.get(field))
        .unwrap()
        .as_str()
        .unwrap()
}

#[test]
fn xml_equals_the_reference() {
    let grouped = XmlRenderer::new(XmlOptions {
        group_fragments: Grouping::Children,
    });
    let rows = rows();
    assert_eq!(rows.len(), 30);
    let mut mixed = 0;
    for (json, row) in &rows {
        let fragments = parse_fragments(json).unwrap();
        let plain = XmlRenderer::default().render(&fragments).unwrap();
        let together = grouped.render(&fragments).unwrap();
        if json.starts_with(r#"[{"name":"c","data":["one""#) {
            assert_eq!((plain.as_str(), together.as_str()), (MIXED, MIXED_GROUPED));
            mixed += 1;
        } else {
            assert_eq!(plain, row["xml"].as_str().unwrap(), "{json}");
            assert_eq!(together, expected(row, "xml"), "{json}");
        }
    }
    assert_eq!(mixed, 1);
}

#[test]
fn markdown_equals_the_reference_where_that_is_sound() {
    let grouped = MarkdownRenderer::new(MarkdownOptions {
        group_fragments: Grouping::Children,
    });
    let mut differing = 0;
    for (json, row) in &rows() {
        let fragments = parse_fragments(json).unwrap();
        let plain = MarkdownRenderer::default().render(&fragments).unwrap();
        let together = grouped.render(&fragments).unwrap();
        let reference = row["markdown"].as_str().unwrap();
        let defect = MARKDOWN_DIFFERS
            .iter()
            .find(|(start, _)| json.starts_with(start));
        if let Some((_, defect)) = defect {
            assert_ne!(plain, reference, "no longer differs: {defect}: {json}");
            differing += 1;
        } else if json.starts_with(MARKDOWN_BLANK) {
            let sound = |text: &str| text.replace("\n\n", "\n");
            assert_eq!(plain, sound(reference));
            assert_eq!(together, sound(expected(row, "markdown")));
            differing += 1;
        } else {
            assert_eq!(plain, reference, "{json}");
            assert_eq!(together, expected(row, "markdown"), "{json}");
        }
    }
    assert_eq!(differing, 13);
}
