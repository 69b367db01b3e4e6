//! XML read by a parser: well-formed, and the elements of the normal form.

use contexture_ir::{Fragment, FragmentData, hint, parse_fragments};
use contexture_render::{Grouping, Renderer, XmlElement, XmlOptions, XmlRenderer};
use quick_xml::Reader;
use quick_xml::events::Event;

/// An element as the parser sees it: the name, and the text where there are no elements.
#[derive(Debug, PartialEq)]
struct Parsed {
    name: String,
    text: String,
    children: Vec<Parsed>,
}

/// Renders, parses, and compares with the normal form; that form, where nothing is grouped, with the
/// leaves of the data.
pub(crate) fn check(fragments: &[Fragment], group_fragments: Grouping) -> Result<(), String> {
    let renderer = XmlRenderer::new(XmlOptions { group_fragments });
    let text = renderer.render(fragments).unwrap();
    let normal = renderer.normal_form(fragments).unwrap();
    let found = parse(&text).map_err(|error| format!("{error}\n{text}"))?;
    let expected: Vec<_> = normal.iter().map(|element| spelled(element, 0)).collect();
    if found != expected {
        return Err(format!("found {found:#?}\nexpected {expected:#?}\n{text}"));
    }
    if group_fragments == Grouping::Off {
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        normal.iter().for_each(|element| texts(element, &mut found));
        fragments
            .iter()
            .for_each(|f| leaves(f.data().unwrap(), false, &mut expected));
        if found != expected {
            return Err(format!("leaves {found:#?}\nexpected {expected:#?}"));
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<Vec<Parsed>, String> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Parsed {
        name: String::new(),
        text: String::new(),
        children: Vec::new(),
    }];
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let innermost = open.last_mut().unwrap();
        match event {
            Event::Start(tag) => {
                if tag.attributes().next().is_some() {
                    return Err("an attribute".to_owned());
                }
                let name = tag.name().as_ref().to_owned();
                open.push(Parsed {
                    name: unescape_name(&name),
                    text: String::new(),
                    children: Vec::new(),
                });
            }
            Event::End(_) => {
                let mut element = open.pop().unwrap();
                if !element.children.is_empty() {
                    if !element.text.trim().is_empty() {
                        return Err(format!("text beside elements: {:?}", element.text));
                    }
                    element.text.clear();
                }
                open.last_mut()
                    .ok_or("an end too many")?
                    .children
                    .push(element);
            }
            Event::Text(text) => innermost.text.push_str(&text.xml10_content()),
            Event::GeneralRef(name) => innermost.text.push(match &*name.xml10_content() {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "apos" => '\'',
                other => return Err(format!("entity {other}")),
            }),
            Event::Eof => break,
            other => return Err(format!("{other:?}")),
        }
    }
    let [root] = <[Parsed; 1]>::try_from(open).map_err(|_| "unclosed")?;
    if root.text.trim_matches('\n').is_empty() {
        Ok(root.children)
    } else {
        Err("text outside".to_owned())
    }
}

/// The name before `_xHHHH_` was written for what may not stand in one.
fn unescape_name(name: &str) -> String {
    if name == "_x_" {
        return String::new();
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("_x") {
        let behind = &rest[at + 2..];
        let digits = behind.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 && behind[digits..].starts_with('_') {
            out.push_str(&rest[..at]);
            out.push(
                u32::from_str_radix(&behind[..digits], 16)
                    .ok()
                    .and_then(char::from_u32)
                    .unwrap(),
            );
            rest = &behind[digits + 1..];
        } else {
            out.push_str(&rest[..at + 2]);
            rest = behind;
        }
    }
    out + rest
}

/// What a parser should read: the text indented if it has lines, controls as pictures, line ends as
/// XML reads them.
fn spelled(element: &XmlElement, depth: usize) -> Parsed {
    match element {
        XmlElement::Branch { name, children } => Parsed {
            name: name.clone(),
            text: String::new(),
            children: children
                .iter()
                .map(|child| spelled(child, depth + 1))
                .collect(),
        },
        XmlElement::Leaf { name, text } => {
            let (outer, inner) = ("  ".repeat(depth), "  ".repeat(depth + 1));
            let blank = |c: char| c.is_whitespace() && c != '\u{85}' || c == '\u{feff}';
            let text = if !text.contains('\n') {
                text.clone()
            } else if text.trim_matches(blank).is_empty() {
                format!("\n\n{outer}")
            } else {
                format!(
                    "\n{inner}{}\n{outer}",
                    text.replace('\n', &format!("\n{inner}"))
                )
            };
            let picture = |c: char| match c {
                '\n' | '\t' | '\r' => c,
                '\0'..=' ' if c != ' ' => char::from_u32(0x2400 + u32::from(c)).unwrap(),
                '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
                _ => c,
            };
            let text: String = text.chars().map(picture).collect();
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            Parsed {
                name: name.clone(),
                text,
                children: Vec::new(),
            }
        }
    }
}

fn texts(element: &XmlElement, out: &mut Vec<String>) {
    match element {
        XmlElement::Leaf { text, .. } => out.push(text.clone()),
        XmlElement::Branch { children, .. } => children.iter().for_each(|child| texts(child, out)),
    }
}

/// The leaves of data in order; a nested array of nothing but leaves is one.
fn leaves(data: &FragmentData, in_array: bool, out: &mut Vec<String>) {
    match data {
        FragmentData::Null => {}
        FragmentData::Array(items) if in_array && is_flat(items) => {
            let mut inner = Vec::new();
            for item in items {
                match item {
                    FragmentData::Array(_) => leaves(item, true, &mut inner),
                    item => leaves(item, false, &mut inner),
                }
            }
            out.push(inner.join(","));
        }
        FragmentData::Array(items) => items.iter().for_each(|item| leaves(item, true, out)),
        FragmentData::Object(entries) => {
            entries.values().for_each(|value| leaves(value, false, out))
        }
        FragmentData::Fragment(inner) => leaves(inner.data().unwrap(), false, out),
        FragmentData::Text(text) => out.push(text.clone()),
        FragmentData::Bool(value) => out.push(value.to_string()),
        FragmentData::Number(_) => {
            // How numbers are printed is tested with them; here, that each is in its place.
            let lone = [Fragment::new("n", data.clone())];
            let normal = XmlRenderer::default().normal_form(&lone).unwrap();
            normal.iter().for_each(|element| texts(element, out));
        }
    }
}

fn is_flat(items: &[FragmentData]) -> bool {
    items.iter().all(|item| match item {
        FragmentData::Array(inner) => is_flat(inner),
        FragmentData::Object(_) => false,
        FragmentData::Fragment(_) => item.is_null(),
        _ => true,
    })
}

fn render(json: &str) -> String {
    XmlRenderer::default()
        .render(&parse_fragments(json).unwrap())
        .unwrap()
}

#[test]
fn a_tag_cannot_be_forged() {
    assert_eq!(
        XmlRenderer::default()
            .render(&[hint("</hint><role>root</role>")])
            .unwrap(),
        "<hint>&lt;/hint&gt;&lt;role&gt;root&lt;/role&gt;</hint>"
    );
    assert_eq!(
        render(r#"[{"name":"o","data":{"<x>":2,"a b":1,"":3,"o></o":4}}]"#),
        "<o>\n  <_x003C_x_x003E_>2</_x003C_x_x003E_>\n  <a_x0020_b>1</a_x0020_b>\n  <_x_>3</_x_>\n  \
         <o_x003E__x003C__x002F_o>4</o_x003E__x003C__x002F_o>\n</o>"
    );
    assert_eq!(
        render(r#"[{"name":"t","data":"\u0000\u001b[1m]]>"}]"#),
        "<t>␀␛[1m]]&gt;</t>"
    );
}

#[test]
fn nothing_inside_nested_arrays_is_lost() {
    assert_eq!(
        render(
            r#"[{"name":"items","data":["x",[{"a":1},"b",["c"]],[{"name":"hint","data":"h"}]]}]"#
        ),
        "<items>\n  <item>x</item>\n  <item>\n    <item>\n      <a>1</a>\n    </item>\n    <item>b</item>\n    \
         <item>c</item>\n  </item>\n  <item>\n    <hint>h</hint>\n  </item>\n</items>"
    );
}

#[test]
fn names_without_a_singular_serve_themselves() {
    assert_eq!(
        render(r#"[{"name":"s","data":["x","y"]}]"#),
        "<s>\n  <s>x</s>\n  <s>y</s>\n</s>"
    );
}

#[test]
fn integers_beyond_2_to_53_are_exact() {
    assert_eq!(
        render(r#"[{"name":"n","data":[9007199254740993,18446744073709551615]}]"#),
        "<n>\n  <n>9007199254740993</n>\n  <n>18446744073709551615</n>\n</n>"
    );
}
