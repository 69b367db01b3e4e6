//! The methods of the workspace's public handles are in one place each.
//!
//! A handle with `impl` blocks in every module makes all modules depend on each other by method calls, which no path
//! shows. Work is done by free functions of the module that owns the rule; the handle only delegates.

use crate::tidy::exempt::HANDLES;
use crate::tidy::files::source::Token;
use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;

/// A type whose inherent `impl` blocks may occur only in some files.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) name: &'static str,
    /// The crate that defines it; types of the same name in other crates are different types.
    pub(crate) crate_directory: &'static str,
    /// Prefixes of paths below `src`.
    pub(crate) allowed: &'static [&'static str],
}

/// Checks where `impl Handle { … }` occurs; trait implementations may be anywhere.
pub(crate) fn check_inherent_impls(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in workspace.shipped_files() {
        for handle in HANDLES {
            let is_elsewhere = file.crate_directory() == Some(handle.crate_directory)
                && file.path_in_src().is_some_and(|path| {
                    !handle.allowed.iter().any(|place| path.starts_with(place))
                });
            if !is_elsewhere {
                continue;
            }
            for window in source.code.windows(3) {
                if is_inherent_impl(window, handle.name) {
                    let line = window.first().map_or(0, |token| token.line);
                    let what = format!("`impl {}` outside its module", handle.name);
                    let remedy = "write a free function that takes the handle";
                    findings.push(Finding::on_line(&file.path, line, what, remedy));
                }
            }
        }
    }
    findings
}

/// Whether the tokens are `impl Name {`; handles have no type parameters.
fn is_inherent_impl(window: &[Token], name: &str) -> bool {
    matches!(window, [keyword, named, open]
        if keyword.text == "impl" && named.text == name && open.text == "{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check_inherent_impls(&Workspace::of(&[(path, text)])).len()
    }

    #[test]
    fn methods_of_a_handle_stand_in_its_module() {
        let text = "impl Conversation { fn f() {} }";
        assert_eq!(found("crates/engine/src/compaction/compact.rs", text), 1);
        assert_eq!(found("crates/engine/src/conversation/read.rs", text), 0);
        assert_eq!(found("crates/server/src/app.rs", text), 0);
    }

    #[test]
    fn traits_may_be_implemented_anywhere() {
        let text = "impl Drop for Conversation { } impl From<Conversation> for A { }";
        assert_eq!(found("crates/engine/src/compaction/compact.rs", text), 0);
    }
}
