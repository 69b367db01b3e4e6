//! SPDX licence expressions as used in `Cargo.toml`: `AND`, `OR`, `WITH`, parentheses, and the old `/` for `OR`.
//!
//! `AND` binds tighter than `OR`. Names are not checked against the SPDX list: a name that is not allowed is not
//! allowed, known or not. <https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/>

/// A licence expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpdxExpression {
    /// A single licence, its exception included: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    /// Any one of these.
    Any(Vec<SpdxExpression>),
    /// All of these.
    All(Vec<SpdxExpression>),
}

/// Maximum nesting.
const MAX_DEPTH: usize = 32;

impl SpdxExpression {
    /// Parses an expression.
    ///
    /// # Errors
    /// What was expected, and where.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        // Spaces around parentheses make splitting at spaces a sufficient lexer. A slash is the old form of OR, which
        // some manifests still use.
        let spaced = text
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut reader = SpdxParser {
            words: words.as_slice(),
            depth: 0,
        };
        let expression = reader.parse_or()?;
        match reader.words.first() {
            None => Ok(expression),
            Some(word) => Err(format!("`{word}` is one too many")),
        }
    }

    /// Whether the expression can be satisfied with allowed licences only.
    pub(crate) fn is_satisfied(&self, is_allowed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(name) => is_allowed(name),
            Self::Any(parts) => parts.iter().any(|part| part.is_satisfied(is_allowed)),
            Self::All(parts) => parts.iter().all(|part| part.is_satisfied(is_allowed)),
        }
    }
}

struct SpdxParser<'a> {
    words: &'a [&'a str],
    depth: usize,
}

impl<'a> SpdxParser<'a> {
    fn next_word(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is_next = self.words.first().is_some_and(|next| *next == word);
        if is_next {
            self.next_word();
        }
        is_next
    }

    fn parse_or(&mut self) -> Result<SpdxExpression, String> {
        // OR binds loosest, so it is parsed at the top and calls AND.
        let mut parts = vec![self.parse_and()?];
        while self.eat_word("OR") {
            parts.push(self.parse_and()?);
        }
        Ok(single_or(parts, SpdxExpression::Any))
    }

    fn parse_and(&mut self) -> Result<SpdxExpression, String> {
        let mut parts = vec![self.parse_term()?];
        while self.eat_word("AND") {
            parts.push(self.parse_term()?);
        }
        Ok(single_or(parts, SpdxExpression::All))
    }

    fn parse_term(&mut self) -> Result<SpdxExpression, String> {
        if self.eat_word("(") {
            self.depth += 1;
            // The text comes from third-party manifests, and each parenthesis adds a level of recursion.
            if self.depth > MAX_DEPTH {
                return Err("too deep".to_owned());
            }
            let inner = self.parse_or()?;
            self.depth -= 1;
            return if self.eat_word(")") {
                Ok(inner)
            } else {
                Err("`)` is missing".to_owned())
            };
        }
        let name = self.parse_name()?;
        // A licence with an exception is one name: the list must contain both together.
        if self.eat_word("WITH") {
            return Ok(SpdxExpression::Licence(format!(
                "{name} WITH {}",
                self.parse_name()?
            )));
        }
        Ok(SpdxExpression::Licence(name.to_owned()))
    }

    fn parse_name(&mut self) -> Result<&'a str, String> {
        match self.next_word() {
            Some(word) if !matches!(word, "AND" | "OR" | "WITH" | "(" | ")") => Ok(word),
            Some(word) => Err(format!("a licence was expected, not `{word}`")),
            None => Err("a licence was expected at the end".to_owned()),
        }
    }
}

fn single_or(
    mut parts: Vec<SpdxExpression>,
    join: fn(Vec<SpdxExpression>) -> SpdxExpression,
) -> SpdxExpression {
    match parts.pop() {
        // A single part needs no list.
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfied(text: &str, allowed: &[&str]) -> bool {
        SpdxExpression::parse(text)
            .unwrap()
            .is_satisfied(&|licence| allowed.contains(&licence))
    }

    #[test]
    fn or_needs_one_and_needs_all() {
        assert!(satisfied("MIT OR GPL-3.0", &["MIT"]));
        assert!(satisfied("MIT/GPL-3.0", &["MIT"]));
        assert!(!satisfied("MIT AND GPL-3.0", &["MIT"]));
        assert!(satisfied("MIT AND ISC", &["MIT", "ISC"]));
    }

    #[test]
    fn and_binds_tighter_and_parentheses_tighter_still() {
        assert!(satisfied("MIT OR ISC AND GPL-3.0", &["MIT"]));
        assert!(!satisfied("(MIT OR ISC) AND GPL-3.0", &["MIT"]));
        assert!(satisfied(
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            &["Apache-2.0", "Unicode-3.0"]
        ));
    }

    #[test]
    fn an_exception_makes_another_licence() {
        let terms = "Apache-2.0 WITH LLVM-exception";
        assert!(satisfied(terms, &[terms]));
        assert!(!satisfied(terms, &["Apache-2.0"]));
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in [
            "",
            "MIT OR",
            "AND MIT",
            "(MIT",
            "MIT)",
            "MIT ISC",
            "MIT WITH",
            &"(".repeat(50),
        ] {
            assert!(SpdxExpression::parse(text).is_err(), "{text}");
        }
    }
}
