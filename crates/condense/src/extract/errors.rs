//! Lines that tell of errors, and exit codes, in the outputs of tools.

/// Words by which a line tells of an error, in lower case.
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
/// The most lines one output gives.
const MOST: usize = 40;

/// The lines that tell of errors, in order.
pub(crate) fn find_error_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && is_error_line(line))
        .take(MOST)
}

fn is_error_line(line: &str) -> bool {
    // The beginning tells; what is longer than a screen's line is data.
    let end = (0..=line.len().min(400))
        .rev()
        .find(|at| line.is_char_boundary(*at));
    let lower = line
        .get(..end.unwrap_or(0))
        .unwrap_or_default()
        .to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// The exit code that an output tells: a field of its JSON, or a line that says so.
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
    // Quoted field names are looked for in JSON only: elsewhere they are quotations.
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

/// The number that stands next, behind a colon, an equals sign, `is` or nothing.
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
