//! A Rust file as a flat list of tokens, without test items.
//!
//! Comments and strings are not code, and `#[cfg(test)]` items are not shipped; checks that ask "does this code mention
//! …" must see neither. Lexing (not parsing) is enough for every check, and works for code that does not compile yet.
//!
//! Not here: what a path means (`paths`), and which mention is wrong (the checks).

use std::collections::BTreeSet;
use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One token. Brackets are tokens of their own (`(` … `)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// What remains of a file.
#[derive(Debug, Default)]
pub(crate) struct LexedSource {
    /// Code outside tests, documentation comments dropped.
    pub(crate) code: Vec<Token>,
    /// All code, tests included.
    pub(crate) all_tokens: Vec<Token>,
    /// Lines of the file that do not belong to a test item.
    pub(crate) lines: usize,
    /// First and last line of each test item.
    pub(crate) test_lines: Vec<(usize, usize)>,
    /// Files declared by `#[cfg(test)] mod name;`.
    pub(crate) test_modules: BTreeSet<String>,
    /// The whole file is behind `#![cfg(test)]`.
    pub(crate) is_test_only: bool,
}

impl LexedSource {
    /// Lexes a file.
    ///
    /// # Errors
    /// The lexer's message when the text is not Rust (an unclosed bracket or string).
    pub(crate) fn lex(text: &str) -> Result<Self, String> {
        let stream = TokenStream::from_str(text).map_err(|error| error.to_string())?;
        let mut source = Self {
            lines: text.lines().count(),
            ..Self::default()
        };
        source.is_test_only = is_test_only_file(&stream);
        // Tests included: some checks ask whether a test exists.
        flatten_stream(&stream, &mut source.all_tokens);
        source.collect_code(stream);
        Ok(source)
    }

    /// True for a line, counted from 1, that belongs to a test item.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&line))
    }

    fn collect_code(&mut self, stream: TokenStream) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut rest = trees.as_slice();
        while let Some((first, after)) = rest.split_first() {
            let (attributes, item) = leading_attributes(rest);
            if attributes.iter().any(is_test_attribute) {
                let (skipped, remaining) = split_item(item);
                self.skip_test_item(first, skipped);
                rest = remaining;
            } else if !attributes.is_empty() {
                for attribute in attributes.iter().filter(|a| !is_doc(a)) {
                    self.code.push(Token {
                        text: "#".to_owned(),
                        line: line_of(attribute),
                    });
                    flatten_tree(attribute, &mut self.code);
                }
                rest = item;
            } else if let [
                TokenTree::Punct(hash),
                TokenTree::Punct(_),
                attribute,
                after @ ..,
            ] = rest
                && hash.as_char() == '#'
                && is_doc(attribute)
            {
                rest = after;
            } else {
                self.collect_tree(first);
                rest = after;
            }
        }
    }

    fn collect_tree(&mut self, tree: &TokenTree) {
        if let TokenTree::Group(group) = tree {
            let (open, close) = bracket_pair(group.delimiter());
            self.code.push(Token {
                text: open.to_owned(),
                line: line_of(tree),
            });
            self.collect_code(group.stream());
            self.code.push(Token {
                text: close.to_owned(),
                line: last_line_of(tree),
            });
        } else {
            flatten_tree(tree, &mut self.code);
        }
    }

    /// Takes a test item out of the count of lines, and notes the file it declares.
    fn skip_test_item(&mut self, first: &TokenTree, item: &[TokenTree]) {
        // Attributes alone, at the end of a file that is being written, have no item behind them.
        let end = item
            .last()
            .map_or_else(|| last_line_of(first), last_line_of);
        self.lines = self
            .lines
            .saturating_sub(end.saturating_sub(line_of(first)) + 1);
        self.test_lines.push((line_of(first), end));
        let words: Vec<String> = item.iter().map(ToString::to_string).collect();
        if let [.., keyword, name, end] = words.as_slice()
            && keyword == "mod"
            && end == ";"
        {
            // `#[cfg(test)] mod name;`: the file is elsewhere, and is marked once all files are
            // read.
            self.test_modules.insert(name.clone());
        }
    }
}

fn is_test_only_file(stream: &TokenStream) -> bool {
    let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
    trees.windows(3).any(|window| match window {
        [TokenTree::Punct(hash), TokenTree::Punct(bang), attribute] => {
            hash.as_char() == '#' && bang.as_char() == '!' && is_test_attribute(attribute)
        }
        _ => false,
    })
}

/// The bracket groups of the outer attributes in front, and what follows them.
fn leading_attributes(mut rest: &[TokenTree]) -> (Vec<TokenTree>, &[TokenTree]) {
    let mut attributes = Vec::new();
    while let [TokenTree::Punct(hash), TokenTree::Group(group), after @ ..] = rest {
        if hash.as_char() != '#' || group.delimiter() != Delimiter::Bracket {
            break;
        }
        attributes.push(TokenTree::Group(group.clone()));
        rest = after;
    }
    (attributes, rest)
}

/// `[test]`, `[tokio::test]`, `[cfg(test)]`, `[cfg(all(test, …))]`.
fn is_test_attribute(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else {
        return false;
    };
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    match trees.as_slice() {
        [TokenTree::Ident(cfg), TokenTree::Group(condition)] if cfg == "cfg" => {
            is_test_condition(condition.stream())
        }
        [.., TokenTree::Ident(last)] => last == "test",
        _ => false,
    }
}

fn is_test_condition(condition: TokenStream) -> bool {
    let trees: Vec<TokenTree> = condition.into_iter().collect();
    match trees.as_slice() {
        [TokenTree::Ident(word)] => word == "test",
        // `any(test, …)` may hold outside tests: it does not count.
        [TokenTree::Ident(all), TokenTree::Group(parts)] if all == "all" => parts
            .stream()
            .into_iter()
            .any(|part| part.to_string() == "test"),
        _ => false,
    }
}

fn is_doc(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else {
        return false;
    };
    group
        .stream()
        .into_iter()
        .next()
        .is_some_and(|first| first.to_string() == "doc")
}

/// Words that begin an item whose end is a `;` or a braced body.
const ITEMS: &[&str] = &[
    "fn",
    "const",
    "mod",
    "impl",
    "struct",
    "enum",
    "trait",
    "union",
    "unsafe",
    "async",
    "extern",
    "macro_rules",
];
/// Words that begin an item that always ends with `;`.
const STATEMENTS: &[&str] = &["use", "static", "type", "let"];

/// Splits what follows an attribute into the thing it stands before and the rest.
fn split_item(trees: &[TokenTree]) -> (&[TokenTree], &[TokenTree]) {
    let is_visibility = |word: &String| word == "pub" || word.starts_with('(');
    let words: Vec<String> = trees
        .iter()
        .take(4)
        .map(ToString::to_string)
        .skip_while(is_visibility)
        .collect();
    let is = |list: &[&str]| {
        words
            .first()
            .is_some_and(|word| list.contains(&word.as_str()))
    };
    let is_const = is(&["const"]) && words.get(1).is_some_and(|word| word != "fn");
    let to_semicolon = is(STATEMENTS) || is_const;
    let is_item = to_semicolon || is(ITEMS);
    let end = trees.iter().position(|tree| match tree {
        TokenTree::Punct(mark) => mark.as_char() == ';' || (mark.as_char() == ',' && !is_item),
        TokenTree::Group(group) => !to_semicolon && group.delimiter() == Delimiter::Brace,
        _ => false,
    });
    trees.split_at(end.map_or(trees.len(), |end| end + 1))
}

fn flatten_stream(stream: &TokenStream, out: &mut Vec<Token>) {
    for tree in stream.clone() {
        flatten_tree(&tree, out);
    }
}

fn flatten_tree(tree: &TokenTree, out: &mut Vec<Token>) {
    if let TokenTree::Group(group) = tree {
        let (open, close) = bracket_pair(group.delimiter());
        out.push(Token {
            text: open.to_owned(),
            line: line_of(tree),
        });
        flatten_stream(&group.stream(), out);
        out.push(Token {
            text: close.to_owned(),
            line: last_line_of(tree),
        });
    } else {
        out.push(Token {
            text: tree.to_string(),
            line: line_of(tree),
        });
    }
}

fn bracket_pair(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

fn line_of(tree: &TokenTree) -> usize {
    tree.span().start().line
}

fn last_line_of(tree: &TokenTree) -> usize {
    tree.span().end().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = LexedSource::lex(text).unwrap();
        source
            .code
            .iter()
            .map(|token| token.text.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn comments_strings_and_tests_are_not_code() {
        assert_eq!(code("//! a\n/// b\n/* c */ fn f() {} // d"), "fn f ( ) { }");
        assert_eq!(
            code("#[cfg(test)] mod tests { fn t() {} } fn f() {}"),
            "fn f ( ) { }"
        );
        assert_eq!(
            code("#[cfg(all(test, unix))] use a::{b, c}; fn f() {}"),
            "fn f ( ) { }"
        );
        assert_eq!(
            code("impl A { #[cfg(test)] pub fn g<T, U>() {} fn f() {} }"),
            "impl A { fn f ( ) { } }"
        );
        assert_eq!(
            code("#[test] fn t() {} #[tokio::test] async fn u() {} fn f() {}"),
            "fn f ( ) { }"
        );
        assert_eq!(
            code("struct S { #[cfg(test)] a: u8, b: u8 }"),
            "struct S { b : u8 }"
        );
        assert_eq!(
            code("#[cfg(test)] const A: B = B { c: 1 }; fn f() {}"),
            "fn f ( ) { }"
        );
        assert_eq!(
            code("#[cfg(test)] pub(crate) const fn t() {} fn f() {}"),
            "fn f ( ) { }"
        );
    }

    #[test]
    fn what_is_not_only_for_tests_stays() {
        assert_eq!(
            code("#[cfg(not(test))] fn f() {}"),
            "# [ cfg ( not ( test ) ) ] fn f ( ) { }"
        );
        assert!(code("#[cfg(any(test, unix))] fn f() {}").ends_with("fn f ( ) { }"));
        assert!(code("#[derive(Debug)] struct S;").contains("derive"));
    }

    #[test]
    fn lines_of_tests_are_not_counted() {
        let source =
            LexedSource::lex("fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n").unwrap();
        assert_eq!(source.lines, 2);
        assert!(
            LexedSource::lex("#![cfg(test)]\nfn t() {}")
                .unwrap()
                .is_test_only
        );
        assert!(
            !LexedSource::lex("#![warn(x)]\nfn t() {}")
                .unwrap()
                .is_test_only
        );
    }

    #[test]
    fn files_that_only_tests_declare_are_noted() {
        let source = LexedSource::lex("#[cfg(test)]\nmod samples;\nmod real;").unwrap();
        assert_eq!(source.test_modules.iter().collect::<Vec<_>>(), ["samples"]);
    }

    #[test]
    fn what_is_not_rust_is_an_error() {
        assert!(LexedSource::lex("fn f() { ").is_err());
    }
}
