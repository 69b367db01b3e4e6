//! Finds lines that report errors, and exit codes, in outputs of tools.

/// Words that mark a line that reports an error, in lower case.
const WORDS: &[&str] = &[
    "error",
    "exception",
    "traceback",
    "failed",
    "failure",
    "fatal",
    "panicked",
    "permission denied",
    "access denied",
    "not found",
    "no such file",
    "cannot ",
    "can't ",
    "unable to",
    "undefined reference",
    "segmentation fault",
    "timed out",
    "refused",
    "unauthorized",
    "forbidden",
    "aborted",
];
/// Maximum number of lines taken from one output.
const MAX_LINES: usize = 40;

/// Returns the lines that report errors, in order.
pub(crate) fn find_error_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && is_error_line(line))
        .take(MAX_LINES)
}

/// Whether a line that reports an error is one of a log, and not a sentence about an error.
pub(crate) fn is_log_line(line: &str) -> bool {
    line.contains(':') && !line.ends_with(['.', '?', '!'])
}

fn is_error_line(line: &str) -> bool {
    // Only the start of a line is checked: the rest of a very long line is data.
    let end = (0..=line.len().min(400))
        .rev()
        .find(|at| line.is_char_boundary(*at));
    let lower = line
        .get(..end.unwrap_or(0))
        .unwrap_or_default()
        .to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// Returns the exit code that an output reports: in a field of its JSON, or on a line of text.
pub(crate) fn exit_code(output: &str) -> Option<i32> {
    const FIELDS: [&str; 8] = [
        "\"exit_code\"",
        "\"exitCode\"",
        "\"returncode\"",
        "\"return_code\"",
        "exit code",
        "exited with code",
        "non-zero exit status",
        "exit status",
    ];
    // Quoted field names count in JSON only: elsewhere they are quotations.
    let json = output.trim_start().starts_with('{');
    let lower = output.to_ascii_lowercase();
    FIELDS
        .iter()
        .filter(|field| json || !field.starts_with('"'))
        .find_map(|field| {
            let at = lower.find(&field.to_ascii_lowercase())?;
            leading_number(lower.get(at + field.len()..)?)
        })
}

/// Parses the number that follows, after a colon, an equals sign, `is` or nothing.
fn leading_number(text: &str) -> Option<i32> {
    let text = text.trim_start_matches([':', '=', ' ', '\t']);
    let text = text.strip_prefix("is ").unwrap_or(text);
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || *at == 0 && *c == '-'))
        .map_or(text.len(), |(at, _)| at);
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_codes_are_found() {
        let text = "all well\n  TypeError: 'x' is not y \n1 failed, 2 passed\nbash: foo: command not found";
        let found: Vec<&str> = find_error_lines(text).collect();
        assert_eq!(
            found,
            [
                "TypeError: 'x' is not y",
                "1 failed, 2 passed",
                "bash: foo: command not found"
            ]
        );
        for (output, code) in [
            (r#"{"output":"x","metadata":{"exit_code":2}}"#, Some(2)),
            ("Exit code 127\nbash: foo", Some(127)),
            ("Process exited with code 0", Some(0)),
            ("returned non-zero exit status 1.", Some(1)),
            ("exit code: -9", Some(-9)),
            ("no code \"exit_code\": 3", None),
            ("exit code unknown", None),
            ("exit code 99999999999", None),
        ] {
            assert_eq!(exit_code(output), code, "{output}");
        }
    }
}
