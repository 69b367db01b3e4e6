//! Markdown read back: by its lines, to every text; and by a CommonMark parser, to its blocks.

use contexture_ir::{Fragment, FragmentData, parse_fragments};
use contexture_render::{MarkdownRenderer, Renderer, XmlElement, XmlRenderer};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// A heading, or a bullet with its label, text and depth.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Heading,
    Body(String),
    Bullet {
        depth: usize,
        label: Option<String>,
        text: String,
    },
}

pub(crate) fn check(fragments: &[Fragment]) -> Result<(), String> {
    let text = MarkdownRenderer::default().render(fragments).unwrap();
    let expected = expected(fragments);
    let found = read(&text).map_err(|reason| format!("{reason}\n{text}"))?;
    if found != expected {
        return Err(format!("found {found:#?}\nexpected {expected:#?}\n{text}"));
    }
    blocks(&text, &expected).map_err(|reason| format!("{reason}\n{text}"))
}

/// What stands where, by the data alone.
fn expected(fragments: &[Fragment]) -> Vec<Line> {
    let mut lines = Vec::new();
    for fragment in fragments {
        match fragment.data().unwrap() {
            data if data.is_null() => {}
            FragmentData::Array(items) => {
                lines.push(Line::Heading);
                items
                    .iter()
                    .for_each(|item| bullets(None, item, 0, &mut lines));
            }
            FragmentData::Object(entries) => {
                lines.push(Line::Heading);
                entries
                    .iter()
                    .for_each(|(key, value)| bullets(Some(key), value, 0, &mut lines));
            }
            data @ FragmentData::Fragment(_) => {
                lines.push(Line::Heading);
                bullets(None, data, 0, &mut lines);
            }
            leaf => lines.extend([Line::Heading, Line::Body(shown(leaf))]),
        }
    }
    lines
}

fn bullets(label: Option<&str>, data: &FragmentData, depth: usize, lines: &mut Vec<Line>) {
    if data.is_null() {
        return;
    }
    let bullet = |text| Line::Bullet {
        depth,
        label: label.map(visible_label),
        text,
    };
    match (label, data) {
        (None, FragmentData::Fragment(inner)) => {
            bullets(Some(&inner.name), inner.data().unwrap(), depth, lines);
        }
        (_, FragmentData::Fragment(_)) => {
            lines.push(bullet(String::new()));
            bullets(None, data, depth + 1, lines);
        }
        (None, FragmentData::Array(items)) if items.iter().all(FragmentData::is_null) => {
            lines.push(bullet("[]".to_owned()));
        }
        (None, FragmentData::Object(entries)) if entries.values().all(FragmentData::is_null) => {
            lines.push(bullet("{}".to_owned()));
        }
        (_, FragmentData::Array(items)) => {
            lines.push(bullet(String::new()));
            items
                .iter()
                .for_each(|item| bullets(None, item, depth + 1, lines));
        }
        (_, FragmentData::Object(entries)) => {
            lines.push(bullet(String::new()));
            entries
                .iter()
                .for_each(|(key, value)| bullets(Some(key), value, depth + 1, lines));
        }
        (_, leaf) => lines.push(bullet(shown(leaf))),
    }
}

/// The leaf's text with its line breaks made `\n` and its control characters pictures.
fn shown(leaf: &FragmentData) -> String {
    let text = match leaf {
        FragmentData::Text(text) => text.clone(),
        other => {
            let lone = [Fragment::new("n", other.clone())];
            match &XmlRenderer::default().normal_form(&lone).unwrap()[..] {
                [XmlElement::Leaf { text, .. }] => text.clone(),
                other => panic!("{other:?}"),
            }
        }
    };
    let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.replace("\r\n", "\n")
        .replace(breaks, "\n")
        .chars()
        .map(picture)
        .collect()
}

fn picture(c: char) -> char {
    match u32::from(c) {
        9 | 10 => c,
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap(),
        _ => c,
    }
}

fn visible_label(name: &str) -> String {
    let breaks = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    name.replace(breaks, "␤").chars().map(picture).collect()
}

/// Reads the lines. What begins with `## ` or, behind spaces, with `-` is structure: that a text
/// cannot make such a line is what is tested.
fn read(text: &str) -> Result<Vec<Line>, String> {
    let mut lines: Vec<Line> = Vec::new();
    if text.is_empty() {
        return Ok(lines);
    }
    for line in text.split('\n') {
        let margin = line.len() - line.trim_start_matches(' ').len();
        let bare = &line[margin..];
        if margin == 0 && (bare.starts_with("## ") || bare == "##") {
            drop_separator(&mut lines)?;
            lines.push(Line::Heading);
        } else if bare == "-" || bare.starts_with("- ") {
            let (mut behind, mut depth) = (bare, margin / 2);
            while let Some(inner) = behind
                .strip_prefix("- ")
                .filter(|inner| inner.starts_with("- "))
            {
                lines.push(Line::Bullet {
                    depth,
                    label: None,
                    text: String::new(),
                });
                (behind, depth) = (inner, depth + 1);
            }
            lines.push(bullet(behind.strip_prefix("- ").unwrap_or(""), depth)?);
        } else {
            match lines.last_mut().ok_or("a line before everything")? {
                Line::Bullet { text, depth, .. } => {
                    let indent = " ".repeat(2 * (*depth + 1));
                    let inner = line.strip_prefix(&indent).unwrap_or(line);
                    if inner.len() == line.len() && !is_blank(line) {
                        return Err(format!("out of its bullet: {line:?}"));
                    }
                    let inner = if is_blank(line) { line } else { inner };
                    *text = format!("{text}\n{}", unguard(inner));
                }
                Line::Body(text) => *text = format!("{text}\n{}", unguard(line)),
                Line::Heading => lines.push(Line::Body(unguard(line))),
            }
        }
    }
    Ok(lines)
}

fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t']).is_empty()
}

/// A heading is preceded by an empty line of its own.
fn drop_separator(lines: &mut Vec<Line>) -> Result<(), String> {
    match lines.last_mut() {
        None => {}
        Some(Line::Body(text)) if text.is_empty() => drop(lines.pop()),
        Some(Line::Body(text) | Line::Bullet { text, .. }) => {
            *text = text.strip_suffix('\n').ok_or("no separator")?.to_owned();
        }
        Some(Line::Heading) => return Err("no separator".to_owned()),
    }
    Ok(())
}

fn bullet(behind: &str, depth: usize) -> Result<Line, String> {
    let Some(labelled) = behind.strip_prefix("**") else {
        return Ok(Line::Bullet {
            depth,
            label: None,
            text: unguard(behind),
        });
    };
    let mut label = String::new();
    let mut rest = labelled.chars();
    loop {
        match rest.next().ok_or("a label without an end")? {
            '\\' => label.extend(rest.next()),
            '*' => break,
            c => label.push(c),
        }
    }
    let rest = rest
        .as_str()
        .strip_prefix("*:")
        .ok_or("a label cut short")?;
    Ok(Line::Bullet {
        depth,
        label: Some(label),
        text: rest.strip_prefix(' ').unwrap_or(rest).to_owned(),
    })
}

/// Removes the backslash that guards the line.
fn unguard(line: &str) -> String {
    let body = line.trim_start();
    let rest = body.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix('\\') {
        Some(guarded) => format!("{}{guarded}", &line[..line.len() - rest.len()]),
        None => line.to_owned(),
    }
}

/// A CommonMark parser with all extensions sees the headings and bullets and no other structure.
fn blocks(text: &str, expected: &[Line]) -> Result<(), String> {
    let (mut headings, mut items) = (0, 0);
    let extensions = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, extensions) {
        match event {
            Event::Start(Tag::Heading { .. }) => headings += 1,
            Event::Start(Tag::Item) => items += 1,
            Event::Start(
                Tag::BlockQuote(_)
                | Tag::HtmlBlock
                | Tag::Table(_)
                | Tag::FootnoteDefinition(_)
                | Tag::DefinitionList
                | Tag::List(Some(_))
                | Tag::CodeBlock(CodeBlockKind::Fenced(_)),
            )
            | Event::Rule => return Err(format!("a block of its own: {event:?}")),
            _ => {}
        }
    }
    let count = |is: fn(&Line) -> bool| expected.iter().filter(|line| is(line)).count();
    let expected_headings = count(|line| matches!(line, Line::Heading));
    let expected_items = count(|line| matches!(line, Line::Bullet { .. }));
    if (headings, items) != (expected_headings, expected_items) {
        return Err(format!(
            "{headings} headings and {items} bullets for {expected:#?}"
        ));
    }
    Ok(())
}

fn render(json: &str) -> String {
    MarkdownRenderer::default()
        .render(&parse_fragments(json).unwrap())
        .unwrap()
}

#[test]
fn structure_cannot_be_forged() {
    assert_eq!(
        render(
            r#"[{"name":"hint","data":"one\n# two\n- three\n```\n1. four\n3.14 -5 #five\n\\six"}]"#
        ),
        "## Hint\none\n\\# two\n\\- three\n\\```\n1\\. four\n3.14 -5 #five\n\\\\six"
    );
    assert_eq!(
        render(r#"[{"name":"o","data":{"a**: b\n- **c":"v\n- **d**: e\n\nf"}}]"#),
        "## O\n- **a\\*\\*: b␤- \\*\\*c**: v\n  \\- **d**: e\n\n  f"
    );
}

#[test]
fn a_line_of_no_break_spaces_stays_in_its_bullet() {
    assert_eq!(
        render(r#"[{"name":"o","data":{"k":"a\n\u00a0\nb","l":["\n\n\u00a0","  "]}}]"#),
        "## O\n- **k**: a\n  \u{a0}\n  b\n- **l**:\n  - \\\n\n    \u{a0}\n  - \\  "
    );
}

#[test]
fn nothing_is_lost() {
    assert_eq!(
        render(r#"[{"name":"users","data":[{"id":1,"tags":["x","y"]},["p",["q"]],"z"]}]"#),
        "## Users\n- - **id**: 1\n  - **tags**:\n    - x\n    - y\n- - p\n  - - q\n- z"
    );
    assert_eq!(
        render(r#"[{"name":"o","data":{"k":{"name":"f","data":"v"}}}]"#),
        "## O\n- **k**:\n  - **f**: v"
    );
}
