//! The paths a file names: in its `use` declarations, flattened, and in its code.
//!
//! `use a::{b, c as d};` gives `a::b` and `a::c`; `fs::read(x)` in code gives `fs::read`. Code inside macros is read
//! like any other. Not here: which module a path leads to
//! (`module_cycles`).

use crate::tidy::files::source::Token;

/// One path somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    /// The inline modules (`mod x { … }`) around it.
    pub(crate) inline_modules: Vec<String>,
    pub(crate) kind: MentionKind,
}

/// How the path was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MentionKind {
    /// In code, an attribute or a macro.
    Code,
    /// `use path`, known here as `name`. `public` when it is a re-export of any visibility.
    Import { name: String, public: bool },
    /// `use path::*`.
    Glob { public: bool },
}

/// Every path of the tokens, in order.
pub(crate) fn path_mentions(tokens: &[Token]) -> Vec<Mention> {
    PathScanner {
        tokens,
        at: 0,
        inline_modules: Vec::new(),
        mentions: Vec::new(),
    }
    .scan_mentions()
}

struct PathScanner<'a> {
    tokens: &'a [Token],
    at: usize,
    /// Inline modules we are in, with the number of open braces at which each one ends.
    inline_modules: Vec<(String, usize)>,
    mentions: Vec<Mention>,
}

impl<'a> PathScanner<'a> {
    fn scan_mentions(mut self) -> Vec<Mention> {
        let mut braces = 0usize;
        let mut public = false;
        while let Some(text) = self.peek_text(0) {
            match text {
                "{" => braces += 1,
                "}" => {
                    braces = braces.saturating_sub(1);
                    // A module ends with the brace that closed it.
                    self.inline_modules.retain(|(_, end)| *end <= braces);
                }
                _ => {}
            }
            if text == "pub" {
                public = true;
                self.at += 1;
                self.skip_restriction();
            } else if text == "use" && self.is_use_declaration() {
                self.at += 1;
                self.read_use_tree(&mut Vec::new(), public);
                public = false;
            } else if text == "mod" && self.peek_text(2) == Some("{") {
                self.inline_modules
                    .push((self.peek_text(1).unwrap_or_default().to_owned(), braces + 1));
                self.at += 2;
                public = false;
            } else if is_name(text) {
                public = false;
                self.read_code_path();
            } else {
                public = false;
                self.at += 1;
            }
        }
        self.mentions
    }

    fn peek_text(&self, ahead: usize) -> Option<&'a str> {
        self.tokens
            .get(self.at + ahead)
            .map(|token| token.text.as_str())
    }

    fn is_colons(&self, ahead: usize) -> bool {
        self.peek_text(ahead) == Some(":") && self.peek_text(ahead + 1) == Some(":")
    }

    /// `use<'a>` in a return type is not a declaration.
    fn is_use_declaration(&self) -> bool {
        self.peek_text(1)
            .is_some_and(|next| is_name(next) || matches!(next, "{" | ":" | "*"))
    }

    /// The `(crate)` of `pub(crate)`.
    fn skip_restriction(&mut self) {
        let restricted = self.peek_text(0) == Some("(")
            && matches!(self.peek_text(1), Some("crate" | "super" | "self" | "in"));
        if restricted {
            while self.peek_text(0).is_some_and(|text| text != ")") {
                self.at += 1;
            }
            self.at += 1;
        }
    }

    /// One branch of a `use` declaration, after the segments in `before`.
    fn read_use_tree(&mut self, before: &mut Vec<String>, public: bool) {
        let depth = before.len();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        while let Some(text) = self.peek_text(0) {
            match text {
                ":" => self.at += 1,
                "{" => {
                    self.at += 1;
                    // The end of the tokens ends it too: code that does not compile is read as
                    // well.
                    while self.peek_text(0).is_some_and(|text| text != "}") {
                        self.read_use_tree(before, public);
                        if self.peek_text(0) == Some(",") {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    self.at += 1;
                    self.record_mention(before.clone(), line, MentionKind::Glob { public });
                    break;
                }
                name if is_name(name) => {
                    before.push(name.to_owned());
                    self.at += 1;
                    if !self.is_colons(0) {
                        self.record_import(before, line, public);
                        break;
                    }
                }
                _ => {
                    self.at += 1;
                    break;
                }
            }
        }
        before.truncate(depth);
    }

    fn record_import(&mut self, path: &[String], line: usize, public: bool) {
        let mut segments = path.to_vec();
        // `a::{self}` imports `a`.
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let mut name = segments.last().cloned().unwrap_or_default();
        if self.peek_text(0) == Some("as") {
            name = self.peek_text(1).unwrap_or_default().to_owned();
            self.at += 2;
        }
        self.record_mention(segments, line, MentionKind::Import { name, public });
    }

    fn read_code_path(&mut self) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        let mut segments = Vec::new();
        while let Some(text) = self.peek_text(0).filter(|text| is_name(text)) {
            segments.push(text.to_owned());
            self.at += 1;
            // `Vec::<u8>` ends at the colons: what follows is a type argument.
            let goes_on = self.is_colons(0) && self.peek_text(2).is_some_and(is_name);
            if !goes_on {
                break;
            }
            self.at += 2;
        }
        self.record_mention(segments, line, MentionKind::Code);
    }

    fn record_mention(&mut self, segments: Vec<String>, line: usize, kind: MentionKind) {
        let inside = self
            .inline_modules
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        self.mentions.push(Mention {
            segments,
            line,
            inline_modules: inside,
            kind,
        });
    }
}

/// True for identifiers and keywords, false for literals and marks.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::files::source::LexedSource;

    fn of(text: &str) -> Vec<Mention> {
        path_mentions(&LexedSource::lex(text).unwrap().code)
    }

    fn written(text: &str) -> Vec<String> {
        of(text)
            .into_iter()
            .map(|mention| mention.segments.join("::"))
            .collect()
    }

    #[test]
    fn imports_are_flattened() {
        assert_eq!(
            written("use a::{b, c::{d as e, self}, f::*};"),
            ["a::b", "a::c::d", "a::c", "a::f"]
        );
        assert_eq!(written("use ::std::fs;"), ["std::fs"]);
        assert_eq!(written("use {a::b, c};"), ["a::b", "c"]);
    }

    #[test]
    fn imports_know_their_name_and_visibility() {
        let found = of("pub(crate) use a::b as c; use d;");
        let import = |name: &str, public| MentionKind::Import {
            name: name.to_owned(),
            public,
        };
        assert_eq!(found[0].kind, import("c", true));
        assert_eq!(found[1].kind, import("d", false));
        assert_eq!(
            of("pub use a::*;")[0].kind,
            MentionKind::Glob { public: true }
        );
    }

    #[test]
    fn paths_in_code_and_in_macros_are_seen() {
        let paths = written("fn f() -> a::B { vec![c::d(e::<g::H>())] }");
        for path in ["a::B", "c::d", "g::H"] {
            assert!(paths.contains(&path.to_owned()), "{path} in {paths:?}");
        }
    }

    #[test]
    fn a_bracketed_field_type_is_not_a_restriction() {
        assert!(written("struct S(pub (a::B, C));").contains(&"a::B".to_owned()));
    }

    #[test]
    fn inline_modules_are_remembered_until_they_end() {
        let found = of("mod a { mod b { fn f() { x() } } fn y() {} } fn z() {}");
        let inside = |name: &str| {
            found
                .iter()
                .find(|mention| mention.segments == [name])
                .unwrap()
                .inline_modules
                .join("::")
        };
        assert_eq!(
            (inside("x"), inside("y"), inside("z")),
            ("a::b".into(), "a".into(), String::new())
        );
    }
}
