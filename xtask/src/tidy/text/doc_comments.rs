//! The first sentence of a documentation comment is a sentence: at least three words, with an end.
//!
//! Not here: comments that say why (`comments`).

use std::collections::BTreeMap;

use crate::tidy::exempt::{DOC_COMMENTS_PENDING, HELP_TEXTS};
use crate::tidy::files::source::LexedSource;
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

const WORDS: usize = 3;
/// What may end the first paragraph; a colon leads over to a list or an example.
const ENDS: &[char] = &['.', ':', '?', '!', '…'];
/// What may stand behind the end.
const CLOSING: &[char] = &[')', '"', '*', '_', '`'];

/// Checks the first paragraph of each documentation comment of a crate that is not pending.
pub(crate) fn check_doc_comments(workspace: &Workspace) -> Vec<Finding> {
    doc_comment_findings(workspace)
        .filter(|(directory, _)| !DOC_COMMENTS_PENDING.contains(directory))
        .map(|(_, finding)| finding)
        .collect()
}

/// Counts the findings of each pending crate.
pub(crate) fn count_pending_doc_comments(workspace: &Workspace) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (directory, _) in doc_comment_findings(workspace) {
        if DOC_COMMENTS_PENDING.contains(&directory) {
            *counts.entry(directory).or_default() += 1;
        }
    }
    // An entry without findings is one as well, so that the list only becomes shorter.
    DOC_COMMENTS_PENDING
        .iter()
        .map(|directory| match counts.get(directory) {
            Some(count) => {
                let what = format!("{count} documentation comments begin with no sentence");
                Finding::on_file(
                    directory,
                    what,
                    "write three words or more, and a full stop",
                )
            }
            None => {
                let what = "all documentation comments begin with a sentence";
                Finding::on_file(directory, what, "remove it from DOC_COMMENTS_PENDING")
            }
        })
        .collect()
}

fn doc_comment_findings(workspace: &Workspace) -> impl Iterator<Item = (&str, Finding)> {
    workspace
        .shipped_files()
        .filter_map(|(file, source)| Some((file.crate_directory()?, file, source)))
        .filter(|(directory, ..)| {
            directory.starts_with("crates/") && !HELP_TEXTS.contains(directory)
        })
        .flat_map(|(directory, file, source)| {
            check_file(file, source)
                .into_iter()
                .map(move |finding| (directory, finding))
        })
}

fn check_file(file: &WorkspaceFile, source: &LexedSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = file
        .text
        .as_deref()
        .unwrap_or_default()
        .lines()
        .zip(1..)
        .peekable();
    while let Some((line, number)) = lines.next() {
        let Some(first) = doc_text(line).filter(|_| !source.is_test_line(number)) else {
            continue;
        };
        let mut paragraph = first.to_owned();
        let mut is_first_paragraph = true;
        while let Some(text) = lines.peek().and_then(|(line, _)| doc_text(line)) {
            is_first_paragraph &= !text.is_empty();
            if is_first_paragraph {
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            lines.next();
        }
        if !is_sentence(&paragraph) {
            let what = format!("documentation begins with `{paragraph}`");
            let remedy = "write a sentence of three words or more, with a full stop";
            findings.push(Finding::on_line(&file.path, number, what, remedy));
        }
    }
    findings
}

/// The text of a line of documentation.
fn doc_text(line: &str) -> Option<&str> {
    // Four slashes are a rule across the page, not documentation.
    let text = line.trim_start().strip_prefix("///")?;
    (!text.starts_with('/')).then_some(text.trim())
}

fn is_sentence(paragraph: &str) -> bool {
    paragraph.split_whitespace().count() >= WORDS
        && paragraph.trim_end_matches(CLOSING).ends_with(ENDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check_doc_comments(&Workspace::of(&[("crates/a/src/b.rs", text)])).len()
    }

    #[test]
    fn what_is_no_sentence_is_found() {
        assert_eq!(found("/// The name.\nstruct A;"), 1);
        assert_eq!(found("/// Name of the run\nstruct A;"), 1);
        assert_eq!(
            found("/// Name of the run\n///\n/// It ends.\nstruct A;"),
            1
        );
    }

    #[test]
    fn sentences_are_not_found() {
        assert_eq!(found("/// Name of the run.\nstruct A;"), 0);
        assert_eq!(
            found("/// Name of the run,\n/// in full (`a`).\n///\n/// x\nstruct A;"),
            0
        );
        assert_eq!(
            found("#[cfg(test)]\nmod tests {\n    /// Name.\n    struct A;\n}"),
            0
        );
    }

    #[test]
    fn pending_crates_are_counted() {
        let directory = DOC_COMMENTS_PENDING[0];
        let path = format!("{directory}/src/b.rs");
        let workspace = Workspace::of(&[(path.as_str(), "/// Name.\nstruct A;")]);
        assert_eq!(check_doc_comments(&workspace), []);
        let counts = count_pending_doc_comments(&workspace);
        assert!(counts[0].what.starts_with("1 documentation"), "{counts:?}");
    }
}
