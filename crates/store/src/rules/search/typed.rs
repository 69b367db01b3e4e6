//! The syntax of a query that a person or a model types: the same in every program.
//!
//! | Typed | Means |
//! |---|---|
//! | `refund gloves` | any of the words, best first |
//! | `"refund the gloves"` | required, side by side |
//! | `glov*` | words that begin so |
//! | `-hats`, `-"blue hats"` | without these |
//! | `from:user` | only items of this kind |
//! | `after:2026-05`, `before:2026-05-03` | only items from then on, or until then (UTC) |
//!
//! Whatever is none of these is words, so any text is a query.
//!
//! Not here: quotes and stars ([`Query`](super::Query)).

use std::borrow::Cow;

use super::dates::parse_iso_date;
use super::query::is_quote;
use crate::contract::{NodeKind, SearchRequest, SearchScope};

/// Returns the request for what was typed, with the defaults for the rest.
///
/// ```
/// use contexture_store::rules::typed_request;
/// use contexture_store::{NodeKind, SearchScope};
///
/// let request = typed_request("gloves -hats from:user after:2026-05", SearchScope::Owner);
/// assert_eq!((request.query.as_str(), request.without.as_str()), ("gloves", "hats"));
/// assert_eq!(request.kinds, [NodeKind::User]);
/// assert_eq!(request.since_ms, Some(1_777_593_600_000));
/// ```
#[must_use]
pub fn typed_request(text: &str, scope: SearchScope) -> SearchRequest {
    let mut request = SearchRequest::new("", scope);
    let mut query: Vec<Cow<'_, str>> = Vec::new();
    let mut without: Vec<&str> = Vec::new();
    for piece in split_pieces(text) {
        match piece.strip_prefix('-') {
            Some(excluded) if is_word_or_phrase(excluded) => without.push(excluded),
            _ if apply_filter(piece, &mut request) => {}
            _ => query.push(Cow::Borrowed(piece)),
        }
    }
    request.query = query.join(" ");
    request.without = without.join(" ");
    request
}

/// Applies `name:value` to the request; returns whether it is a filter.
fn apply_filter(piece: &str, request: &mut SearchRequest) -> bool {
    let Some((name, value)) = piece.split_once(':') else {
        return false;
    };
    match name {
        "from" => {
            let kind = NodeKind::ALL
                .into_iter()
                .find(|kind| is_named(*kind, value));
            request.kinds.extend(kind);
            kind.is_some()
        }
        "after" | "before" => {
            let Some(range) = parse_iso_date(value) else {
                return false;
            };
            let bound = match name {
                "after" => &mut request.since_ms,
                _ => &mut request.before_ms,
            };
            *bound = Some(range.start);
            true
        }
        _ => false,
    }
}

fn is_named(kind: NodeKind, name: &str) -> bool {
    let other_name = match kind {
        NodeKind::Assistant => "model",
        NodeKind::Instruction => "system",
        NodeKind::FunctionCallOutput => "tool",
        _ => "",
    };
    !name.is_empty() && (kind.as_str() == name || other_name == name)
}

/// Whether a minus before this excludes it. `-5`, `--no-verify` and the option of `cargo test -p` are words.
fn is_word_or_phrase(text: &str) -> bool {
    let is_option = text.len() < 2;
    let is_word = |c: char| c.is_alphanumeric() && !c.is_ascii_digit();
    text.starts_with(|c: char| is_quote(c) || (is_word(c) && !is_option))
}

/// Splits a text at white space outside of double quotes.
#[must_use]
pub fn split_pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        if is_quote(c) {
            is_quoted = !is_quoted;
        }
        if c.is_whitespace() && !is_quoted {
            pieces.extend(text.get(start..at));
            start = at + c.len_utf8();
        }
    }
    pieces.extend(text.get(start..));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_read_and_the_rest_is_words() {
        for (text, query, without, kinds) in [
            ("", "", "", ""),
            ("gloves hats", "gloves hats", "", ""),
            ("\"a -b from:user\" c", "\"a -b from:user\" c", "", ""),
            ("a -bb -\"c d\" -e*", "a", "bb \"c d\" e*", ""),
            ("hats -“blue hats”", "hats", "“blue hats”", ""),
            ("cargo test -p foo", "cargo test -p foo", "", ""),
            (
                "foo-bar --no-verify -5 - -",
                "foo-bar --no-verify -5 - -",
                "",
                "",
            ),
            ("from:user from:model x", "x", "", "user assistant"),
            ("from:nobody from: a:b", "from:nobody from: a:b", "", ""),
            (
                "after:may before:2026-99",
                "after:may before:2026-99",
                "",
                "",
            ),
            ("open \"quote", "open \"quote", "", ""),
        ] {
            let request = typed_request(text, SearchScope::Owner);
            let found: Vec<&str> = request.kinds.iter().map(|kind| kind.as_str()).collect();
            let found = (
                request.query.as_str(),
                request.without.as_str(),
                found.join(" "),
            );
            assert_eq!(found, (query, without, kinds.to_owned()), "{text}");
        }
    }

    #[test]
    fn dates_bound_the_time() {
        let request = typed_request("x after:2026-05 before:2026-05-03", SearchScope::Owner);
        let day = 86_400_000;
        let start = 1_777_593_600_000;
        assert_eq!(
            (request.since_ms, request.before_ms),
            (Some(start), Some(start + 2 * day))
        );
    }
}
