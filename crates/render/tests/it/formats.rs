//! What the data formats look like, and that bad data is refused.

use contexture_ir::{fragment, hint, object, parse_fragments, role, term, user};
use contexture_render::{
    DataOptions, DocumentShape, Format, Grouping, JsonOptions, JsonRenderer, Renderer,
    TomlRenderer, ToonRenderer, YamlRenderer,
};

fn check(format: Format, json: &str, expected: &str) {
    let fragments = parse_fragments(json).unwrap();
    let text = format.renderer(Grouping::Off).render(&fragments).unwrap();
    assert_eq!(text, expected, "{format} of {json}");
}

#[test]
fn toml() {
    let config = r#"[{"name":"config","data":{"database":{"host":"h","port":5432},"on":true}}]"#;
    check(
        Format::Toml,
        config,
        "[config]\ndatabase = { host = \"h\", port = 5432 }\non = true",
    );
    check(
        Format::Toml,
        r#"[{"name":"a","data":{"k":[],"o":{},"x":null}}]"#,
        "[a]\nk = []\n\n[a.o]",
    );
    check(
        Format::Toml,
        r#"[{"name":"a b","data":"x\"\n]"}]"#,
        "\"a b\" = \"\"\"\nx\"\n]\"\"\"",
    );
    check(
        Format::Toml,
        r#"[{"name":"hint","data":"a"},{"name":"hint","data":"b"}]"#,
        "fragments = [\n  { hint = \"a\" },\n  { hint = \"b\" },\n]",
    );
    // A table behind all plain values has a header of its own.
    check(
        Format::Toml,
        r#"[{"name":"a","data":1},{"name":"b","data":{"c":{"d":{"e":2}},"f":{}}}]"#,
        "a = 1\n\n[b.c.d]\ne = 2\n\n[b.f]",
    );
    check(Format::Toml, "[]", "");
}

#[test]
fn toml_keeps_order_and_names_nothing_twice() {
    let database = fragment(
        "database",
        (
            contexture_ir::Fragment::new("table", object([("name", "users")])),
            hint("Ask before you drop it."),
            contexture_ir::Fragment::new("table", object([("name", "orders")])),
        ),
    );
    let fragments = [role("R"), database, hint("H")];
    let text = Format::Toml
        .renderer(Grouping::Off)
        .render(&fragments)
        .unwrap();
    assert_eq!(
        text,
        "role = \"R\"\ndatabase = [\n  { table = { name = \"users\" } },\n  { hint = \"Ask before you drop it.\" },\n  \
         { table = { name = \"orders\" } },\n]\nhint = \"H\""
    );
}

#[test]
fn yaml() {
    check(
        Format::Yaml,
        r#"[{"name":"a","data":{"k":[],"o":{},"x":null,"s":""}}]"#,
        "a:\n  k: []\n  o: {}\n  x: null\n  s: \"\"",
    );
    check(
        Format::Yaml,
        r#"[{"name":"a","data":["no","1e3","~","plain text","a: b",1,1e21,[1,[2]],{"k":"v","l":1}]}]"#,
        "a:\n  - \"no\"\n  - \"1e3\"\n  - \"~\"\n  - plain text\n  - \"a: b\"\n  - 1\n  - 1.0e+21\n  \
         - - 1\n    - - 2\n  - k: v\n    l: 1",
    );
    check(
        Format::Yaml,
        r#"[{"name":"code","data":"fn a() {\n\n  1\n}\n"},{"name":"b","data":"x\ny"}]"#,
        "code: |\n  fn a() {\n\n    1\n  }\nb: |-\n  x\n  y",
    );
    check(
        Format::Yaml,
        r#"[{"name":"hint","data":"a"},{"name":"hint","data":"b"}]"#,
        "- hint: a\n- hint: b",
    );
    check(Format::Yaml, "[]", "{}");
}

#[test]
fn toon() {
    check(
        Format::Toon,
        r#"[{"name":"users","data":[{"id":1,"n":"A"},{"id":2,"n":"B"}]}]"#,
        "users[2]{id,n}:\n  1,A\n  2,B",
    );
    check(
        Format::Toon,
        r#"[{"name":"a","data":{"k":{"name":"f","data":"v"},"z":null}}]"#,
        "a:\n  k:\n    f: v",
    );
    check(Format::Toon, "[]", "");
}

#[test]
fn json_layouts() {
    let fragments = [role("r"), fragment("list", (hint("h"), "x"))];
    let render = |data: DataOptions, pretty| {
        JsonRenderer::new(JsonOptions { data, pretty })
            .render(&fragments)
            .unwrap()
    };
    assert_eq!(
        render(DataOptions::default(), false),
        r#"{"role":"r","list":[{"hint":"h"},"x"]}"#
    );
    assert_eq!(
        render(DataOptions::default(), true),
        "{\n  \"role\": \"r\",\n  \"list\": [\n    {\n      \"hint\": \"h\"\n    },\n    \"x\"\n  ]\n}"
    );
    let tagged = DataOptions {
        shape: DocumentShape::Tagged,
        ..DataOptions::default()
    };
    assert_eq!(
        render(tagged, false),
        r#"[{"name":"role","data":"r"},{"name":"list","data":[{"name":"hint","data":"h"},"x"]}]"#
    );
}

#[test]
fn grouping() {
    let fragments = [
        hint("a"),
        role("r"),
        hint("b"),
        fragment("d", ("x", hint("c"), 1, hint("d"))),
        contexture_ir::Fragment::new("o", object([("list", [hint("e"), hint("f")])])),
    ];
    let render = |format: Format, grouping| format.renderer(grouping).render(&fragments).unwrap();
    assert_eq!(
        render(Format::Xml, Grouping::Everywhere),
        "<hints>\n  <hint>a</hint>\n  <hint>b</hint>\n</hints>\n<roles>\n  <role>r</role>\n</roles>\n\
         <ds>\n  <d>\n    <d>x</d>\n    <hints>\n      <hint>c</hint>\n      <hint>d</hint>\n    \
         </hints>\n    <d>1</d>\n  </d>\n</ds>\n<os>\n  <o>\n    <list>\n      <hint>e</hint>\n      \
         <hint>f</hint>\n    </list>\n  </o>\n</os>"
    );
    assert_eq!(
        render(Format::Json, Grouping::Everywhere),
        r#"{"hints":["a","b"],"roles":["r"],"ds":[["x",{"hints":["c","d"]},1]],"os":[{"list":[{"hint":"e"},{"hint":"f"}]}]}"#
    );
    assert_eq!(
        render(Format::Json, Grouping::Children),
        r#"[{"hint":"a"},{"role":"r"},{"hint":"b"},{"d":["x",{"hints":["c","d"]},1]},{"o":{"list":[{"hint":"e"},{"hint":"f"}]}}]"#
    );
    assert_eq!(
        render(Format::Markdown, Grouping::Everywhere),
        "## Hints\n- **hint**: a\n- **hint**: b\n\n## Roles\n- **role**: r\n\n## Ds\n- **d**:\n  - x\n  \
         - **hint**: c\n  - 1\n  - **hint**: d\n\n## Os\n- **o**:\n  - **list**:\n    - **hint**: e\n    - **hint**: f"
    );
    let tagged = DataOptions {
        group_fragments: Grouping::Everywhere,
        shape: DocumentShape::Tagged,
    };
    let text = JsonRenderer::new(JsonOptions {
        data: tagged,
        pretty: false,
    })
    .render(&fragments[..2])
    .unwrap();
    assert_eq!(
        text,
        r#"[{"name":"hints","data":[{"name":"hint","data":"a"}]},{"name":"roles","data":[{"name":"role","data":"r"}]}]"#
    );
}

#[test]
fn messages_are_history_and_not_rendered() {
    for format in Format::ALL {
        let renderer = format.renderer(Grouping::Off);
        assert_eq!(renderer.name(), format.as_str());
        let with = renderer
            .render(&[user("hello"), term("t", "d"), user("bye")])
            .unwrap();
        assert_eq!(with, renderer.render(&[term("t", "d")]).unwrap());
        // Inside another fragment a message is shown as data.
        let inside = renderer
            .render(&[fragment("quote", [user("hello")])])
            .unwrap();
        assert!(inside.contains("hello"), "{format}: {inside}");
    }
}

#[test]
fn formats_by_name() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    let error = "html".parse::<Format>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown format `html`; known are xml, markdown, toml, toon, yaml, json"
    );
}

#[test]
fn shapes_of_the_other_data_formats() {
    let tagged = DataOptions {
        shape: DocumentShape::Tagged,
        ..DataOptions::default()
    };
    let fragments = [hint("a")];
    let yaml = YamlRenderer::new(tagged.clone())
        .render(&fragments)
        .unwrap();
    assert_eq!(yaml, "- name: hint\n  data: a");
    let toml = TomlRenderer::new(tagged.clone())
        .render(&fragments)
        .unwrap();
    assert_eq!(
        toml,
        "fragments = [\n  { name = \"hint\", data = \"a\" },\n]"
    );
    let toon = ToonRenderer::new(tagged).render(&fragments).unwrap();
    assert_eq!(toon, "[1]{name,data}:\n  hint,a");
}
