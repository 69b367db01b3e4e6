//! Public functions take no `bool`, because `open(path, true)` does not show what is true. Use an enum or an options
//! struct.

use crate::tidy::files::paths::is_name;
use crate::tidy::files::source::Token;
use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;

/// Checks every `pub fn` except in tests, programs and this crate, which have no callers elsewhere.
pub(crate) fn check_signatures(workspace: &Workspace) -> Vec<Finding> {
    let libraries = workspace.shipped_files().filter(|(file, _)| {
        file.path.starts_with("crates/") && file.crate_directory() != Some("crates/cli")
    });
    let mut findings = Vec::new();
    for (file, source) in libraries {
        for at in 0..source.code.len() {
            let rest = source.code.get(at..).unwrap_or_default();
            if let Some((name, parameter)) = find_bool_parameter(rest) {
                let what = format!("public `{}` takes a bool (`{}`)", name.text, parameter.text);
                let remedy = "take an enum of two, or an options struct";
                findings.push(Finding::on_line(&file.path, parameter.line, what, remedy));
            }
        }
    }
    findings
}

/// Returns the function's and the parameter's name, if these tokens start a public function with such a parameter.
fn find_bool_parameter(tokens: &[Token]) -> Option<(&Token, &Token)> {
    let (first, rest) = tokens.split_first()?;
    if first.text != "pub" {
        return None;
    }
    let is_modifier =
        |token: &Token| matches!(token.text.as_str(), "const" | "async" | "unsafe" | "extern");
    let keyword = rest.iter().position(|token| !is_modifier(token))?;
    let [keyword, name, rest @ ..] = rest.get(keyword..)? else {
        return None;
    };
    if keyword.text != "fn" || !is_name(&name.text) {
        return None;
    }
    let rest = rest.get(parameters_start(rest)?..)?;
    let mut depth = 0usize;
    for (at, token) in rest.iter().enumerate() {
        match token.text.as_str() {
            "(" => depth += 1,
            ")" if depth == 1 => return None,
            ")" => depth -= 1,
            // `flag: bool,` at the top level of the list; `Fn(bool)` and `Option<bool>` are something else.
            "bool" if depth == 1 => {
                let before = at.checked_sub(2).and_then(|from| rest.get(from..at))?;
                if let [parameter, colon] = before
                    && colon.text == ":"
                    && is_name(&parameter.text)
                {
                    return Some((name, parameter));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns where the parameter list starts: the first `(` that is not inside `<…>`.
fn parameters_start(tokens: &[Token]) -> Option<usize> {
    let mut angles = 0usize;
    let mut before = "";
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "<" => angles += 1,
            ">" if before != "-" => angles = angles.saturating_sub(1),
            "(" if angles == 0 => return Some(at),
            _ => {}
        }
        before = &token.text;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check_signatures(&Workspace::of(&[(path, text)])).len()
    }

    #[test]
    fn a_bool_parameter_is_found() {
        for text in [
            "pub fn f(a: u8, deep: bool) {}",
            "impl A { pub async fn f<T: Fn(u8)>(&self, deep: bool, b: u8) {} }",
            "pub const fn f(deep: bool) -> bool { deep }",
        ] {
            assert_eq!(found("crates/a/src/b.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn other_bools_are_not() {
        for text in [
            "fn f(deep: bool) {}",
            "pub(crate) fn f(deep: bool) {}",
            "pub fn f() -> bool { true }",
            "pub fn f(a: impl Fn(bool) -> bool, b: Option<bool>) {}",
            "pub struct Options { pub deep: bool }",
        ] {
            assert_eq!(found("crates/a/src/b.rs", text), 0, "{text}");
        }
        assert_eq!(found("crates/cli/src/b.rs", "pub fn f(deep: bool) {}"), 0);
    }
}
