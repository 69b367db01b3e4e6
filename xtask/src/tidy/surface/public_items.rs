//! Lists the public items of a Rust file: functions, types, fields, variants, constants, re-exports.
//!
//! The compiler warns of `pub` that nobody can reach (`unreachable_pub`), so every `pub` is public. Items that macros
//! generate and implementations of traits are not listed.

use crate::tidy::files::source::Token;

/// A public item as one line of text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PublicItem {
    /// `fn Agent::new(name: impl Into<String>) -> Self`.
    pub(crate) text: String,
    /// The last part of its path.
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// What the items in a pair of braces belong to.
#[derive(Clone, Copy)]
enum Owner<'t> {
    Module,
    Type(&'t str),
    /// Its functions are public without saying so.
    Trait(&'t str),
}

/// Lists the public items among these tokens of a file, in order.
pub(crate) fn list_public_items(code: &[Token]) -> Vec<PublicItem> {
    let mut items = Vec::new();
    collect_items(code, Owner::Module, &mut items);
    items
}

fn collect_items(code: &[Token], owner: Owner<'_>, items: &mut Vec<PublicItem>) {
    let mut rest = skip_attributes(code);
    while !rest.is_empty() {
        let (visibility, item) = split_visibility(rest);
        let (head, body, after) = split_item(item);
        let is_public = visibility || matches!(owner, Owner::Trait(_));
        collect_item(head, body, is_public, owner, items);
        rest = skip_attributes(after);
    }
}

fn collect_item(
    head: &[Token],
    body: &[Token],
    is_public: bool,
    owner: Owner<'_>,
    items: &mut Vec<PublicItem>,
) {
    let keyword = head
        .iter()
        .position(|token| {
            !matches!(
                token.text.as_str(),
                "async" | "unsafe" | "extern" | "default"
            )
        })
        .unwrap_or_default();
    let is_const_fn = matches!(head.get(keyword..), Some([first, second, ..]) if first.text == "const" && second.text == "fn");
    let keyword = keyword + usize::from(is_const_fn);
    let Some([word, name, ..]) = head.get(keyword..) else {
        return;
    };
    let declaration = head.get(keyword + 1..).unwrap_or_default();
    let mut push = |text: String| {
        items.push(PublicItem {
            text,
            name: name.text.clone(),
            line: name.line,
        });
    };
    match word.text.as_str() {
        "impl" => {
            if let Some(type_name) = inherent_type(declaration) {
                collect_items(body, Owner::Type(type_name), items);
            }
        }
        "mod" if !is_public => collect_items(body, Owner::Module, items),
        _ if !is_public => {}
        "fn" => push(format!("fn {}{}", prefix(owner), join_tokens(declaration))),
        "const" | "static" | "type" => {
            let end = declaration.iter().position(|token| token.text == "=");
            let declaration = declaration.get(..end.unwrap_or(declaration.len()));
            let text = join_tokens(declaration.unwrap_or_default());
            push(format!("{} {}{text}", word.text, prefix(owner)));
        }
        "struct" | "union" => {
            push(format!("struct {}", join_tokens(declaration)));
            collect_fields(&name.text, body, items);
        }
        "enum" => {
            push(format!("enum {}", join_tokens(declaration)));
            collect_variants(&name.text, body, items);
        }
        "trait" => {
            push(format!("trait {}", join_tokens(declaration)));
            collect_items(body, Owner::Trait(&name.text), items);
        }
        "mod" => {
            push(format!("mod {}", name.text));
            collect_items(body, Owner::Module, items);
        }
        "use" => collect_reexports("", declaration, items),
        _ => {}
    }
}

fn prefix(owner: Owner<'_>) -> String {
    match owner {
        Owner::Module => String::new(),
        Owner::Type(name) | Owner::Trait(name) => format!("{name}::"),
    }
}

fn collect_fields(owner: &str, body: &[Token], items: &mut Vec<PublicItem>) {
    for field in split_at_commas(body) {
        let (is_public, field) = split_visibility(skip_attributes(field));
        if let (true, Some(name)) = (is_public, field.first()) {
            items.push(PublicItem {
                text: format!("field {owner}::{}", join_tokens(field)),
                name: name.text.clone(),
                line: name.line,
            });
        }
    }
}

fn collect_variants(owner: &str, body: &[Token], items: &mut Vec<PublicItem>) {
    for variant in split_at_commas(body) {
        let variant = skip_attributes(variant);
        let Some(name) = variant.first() else {
            continue;
        };
        items.push(PublicItem {
            text: format!("variant {owner}::{}", name.text),
            name: name.text.clone(),
            line: name.line,
        });
        // Fields of a variant are as public as the variant.
        if let Some([open, fields @ .., _]) = variant.get(1..)
            && open.text == "{"
        {
            for field in split_at_commas(fields).map(skip_attributes) {
                if let Some(field_name) = field.first() {
                    items.push(PublicItem {
                        text: format!("field {owner}::{}::{}", name.text, join_tokens(field)),
                        name: field_name.text.clone(),
                        line: field_name.line,
                    });
                }
            }
        }
    }
}

/// Lists `a::{b, c as d}` as `a::b` and `a::c as d`.
fn collect_reexports(path: &str, tree: &[Token], items: &mut Vec<PublicItem>) {
    for branch in split_at_commas(tree) {
        let open = branch.iter().position(|token| token.text == "{");
        match (open, branch.last()) {
            (Some(open), Some(_)) => {
                let inner = branch.get(open + 1..branch.len() - 1).unwrap_or_default();
                let start = join_tokens(branch.get(..open).unwrap_or_default());
                collect_reexports(&format!("{path}{start}"), inner, items);
            }
            (None, Some(name)) => items.push(PublicItem {
                text: format!("use {path}{}", join_tokens(branch)),
                name: name.text.clone(),
                line: name.line,
            }),
            (_, None) => {}
        }
    }
}

/// The type of `impl<T> Type<T>`; `None` for the implementation of a trait.
pub(crate) fn inherent_type(declaration: &[Token]) -> Option<&str> {
    let mut depth = 0usize;
    let mut name = None;
    for (at, token) in declaration.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| declaration.get(at));
        match token.text.as_str() {
            "<" => depth += 1,
            ">" if before.is_some_and(|before| before.text != "-") => {
                depth = depth.saturating_sub(1);
            }
            "for" if depth == 0 => return None,
            "where" if depth == 0 => break,
            word if depth == 0 && word.starts_with(char::is_alphabetic) => name = Some(word),
            _ => {}
        }
    }
    name
}

fn skip_attributes(mut rest: &[Token]) -> &[Token] {
    while let Some(start) = attribute_start(rest) {
        rest = rest
            .get(start + bracket_len(rest.get(start..).unwrap_or_default())..)
            .unwrap_or_default();
    }
    rest
}

/// Where the bracket of the attribute in front begins, if there is one.
fn attribute_start(rest: &[Token]) -> Option<usize> {
    match rest {
        [hash, open, ..] if hash.text == "#" && open.text == "[" => Some(1),
        [hash, bang, open, ..] if hash.text == "#" && bang.text == "!" && open.text == "[" => {
            Some(2)
        }
        _ => None,
    }
}

/// Whether the item in front is `pub`, and the item behind its visibility.
fn split_visibility(rest: &[Token]) -> (bool, &[Token]) {
    match rest {
        [word, open, ..] if word.text == "pub" && open.text == "(" => {
            let scope = bracket_len(rest.get(1..).unwrap_or_default());
            (false, rest.get(1 + scope..).unwrap_or_default())
        }
        [word, item @ ..] if word.text == "pub" => (true, item),
        _ => (false, rest),
    }
}

/// Splits off one item: what stands before its body, the body, and what follows.
fn split_item(rest: &[Token]) -> (&[Token], &[Token], &[Token]) {
    // The braces of `use a::{b}` are no body.
    let has_body = rest.first().is_none_or(|token| token.text != "use");
    let mut at = 0;
    while let Some(token) = rest.get(at) {
        let ahead = rest.get(at..).unwrap_or_default();
        match token.text.as_str() {
            ";" => return parts(rest, at, at, at + 1),
            "{" if has_body => {
                let end = at + bracket_len(ahead);
                return parts(rest, at, end, end);
            }
            _ => at += bracket_len(ahead),
        }
    }
    (rest, &[], &[])
}

fn parts(
    rest: &[Token],
    head: usize,
    body_end: usize,
    next: usize,
) -> (&[Token], &[Token], &[Token]) {
    let body = rest.get(head + 1..body_end.saturating_sub(1).max(head + 1));
    (
        rest.get(..head).unwrap_or_default(),
        body.unwrap_or_default(),
        rest.get(next..).unwrap_or_default(),
    )
}

/// Number of tokens of the bracket in front with all that is in it; 1 where there is none.
pub(crate) fn bracket_len(tokens: &[Token]) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len().max(1)
}

/// Splits at commas outside of brackets and generics.
fn split_at_commas(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    let mut depth = 0usize;
    let mut before_is_minus = false;
    tokens.split(move |token| {
        match token.text.as_str() {
            "(" | "[" | "{" | "<" => depth += 1,
            // `->` closes nothing.
            ">" if before_is_minus => {}
            ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
        before_is_minus = token.text == "-";
        depth == 0 && token.text == ","
    })
}

/// Tokens as Rust is usually spaced.
fn join_tokens(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        let word = token.text.as_str();
        let is_tight = text.is_empty()
            || text.ends_with(['(', '[', '<', '&', '\'', '!', '*', '.', '?'])
            || text.ends_with("::")
            || matches!(word, "," | ";" | ")" | "]" | "." | "!" | "<")
            || (word == ":" && !text.ends_with(": "))
            || (word == ">" && !text.ends_with(' '))
            || (word == "("
                && text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '>')
                && !text.ends_with("->"));
        if !is_tight {
            text.push(' ');
        }
        text.push_str(word);
    }
    // A list over several lines ends with a comma, one on a single line does not: the text should not care.
    text.replace(",)", ")")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::files::source::LexedSource;

    fn list(text: &str) -> Vec<String> {
        let source = LexedSource::lex(text).unwrap();
        let items = list_public_items(&source.code);
        items.into_iter().map(|item| item.text).collect()
    }

    #[test]
    fn functions_are_listed_with_their_signature() {
        assert_eq!(
            list("pub const fn f<'a>(x: &'a [u8], y: impl Fn(u8) -> u8) -> Option<a::B<'a>> { x }"),
            ["fn f<'a>(x: &'a [u8], y: impl Fn(u8) -> u8) -> Option<a::B<'a>>"]
        );
        assert_eq!(list("pub(crate) fn f() {} fn g() {}"), [""; 0]);
    }

    #[test]
    fn members_are_listed_with_their_owner() {
        assert_eq!(
            list(
                "/// A.\n#[derive(Debug)] pub struct A { pub b: Vec<(u8, u8)>, c: u8 } impl<T> A<T> { pub fn d(&self) {} fn e() {} } impl X for A { fn x() {} }"
            ),
            ["struct A", "field A::b: Vec<(u8, u8)>", "fn A::d(&self)"]
        );
        assert_eq!(
            list(
                "pub enum E { #[default] A, B(u8), C { d: u8 } } pub trait T { const X: u8 = 1; fn y(&self); }"
            ),
            [
                "enum E",
                "variant E::A",
                "variant E::B",
                "variant E::C",
                "field E::C::d: u8",
                "trait T",
                "const T::X: u8",
                "fn T::y(&self)"
            ]
        );
    }

    #[test]
    fn reexports_are_listed_one_by_one() {
        assert_eq!(
            list("mod a; pub use a::{B, c::{D, E as F}}; use g::H; pub const I: u8 = 1;"),
            ["use a::B", "use a::c::D", "use a::c::E as F", "const I: u8"]
        );
    }
}
