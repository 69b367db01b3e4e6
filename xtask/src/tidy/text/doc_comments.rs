//! The first paragraph of a `///` comment is a sentence: at least three words, with a full stop.
//!
//! Not here: `//` comments (`comments`), and docs of modules (`modules`).

use crate::tidy::exempt::HELP_TEXTS;
use crate::tidy::files::source::LexedSource;
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

const WORDS: usize = 3;
/// Characters that may end the first paragraph; a colon introduces a list or an example.
const ENDS: &[char] = &['.', ':', '?', '!', '…'];
/// Characters that may follow the end.
const CLOSING: &[char] = &[')', '"', '*', '_', '`'];

/// Checks the first paragraph of each `///` comment.
pub(crate) fn check_doc_comments(workspace: &Workspace) -> Vec<Finding> {
    workspace
        .shipped_files()
        .filter_map(|(file, source)| Some((file.crate_directory()?, file, source)))
        .filter(|(directory, ..)| {
            directory.starts_with("crates/") && !HELP_TEXTS.contains(directory)
        })
        .flat_map(|(_, file, source)| check_file(file, source))
        .collect()
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

/// Returns the text of a line of documentation.
fn doc_text(line: &str) -> Option<&str> {
    // Four slashes are a separator line, not documentation.
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
}
