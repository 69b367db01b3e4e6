//! Pipes for programs: one JSON document a line in, one a line out, in order.
//!
//! Every line of input gives exactly one line of output, so that a program can count. A line that
//! cannot be answered gives `{"error":{"kind","message"}}` and the rest go on. An empty line is such
//! a line. Answers are written out whenever the next line is not there yet, so that a program can
//! talk line by line.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The longest line: what a document may have in bytes.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// Answers each line of `input` on standard output.
///
/// # Errors
/// When reading or writing fails; not for a bad line, which makes it [`Exit::Findings`].
pub(crate) fn answer_lines(
    input: &mut BufReader<impl Read>,
    answer: impl FnMut(&str) -> Outcome<String>,
) -> Outcome {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let exit = answer_each_line(input, &mut out, answer)?;
    out.flush()?;
    Ok(exit)
}

fn answer_each_line(
    input: &mut BufReader<impl Read>,
    out: &mut impl Write,
    mut answer: impl FnMut(&str) -> Outcome<String>,
) -> Outcome {
    let mut exit = Exit::Done;
    let mut line = Vec::new();
    loop {
        // One buffer for all lines: it grows to the longest and stays.
        line.clear();
        let read = |error: io::Error| {
            Failure::new(
                Exit::Stream,
                "read",
                format!("cannot read the input: {error}"),
            )
        };
        let length = input
            .by_ref()
            // Input without line ends would otherwise fill the memory.
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(read)?;
        if length == 0 {
            return Ok(exit);
        }
        // The rest of that line would be read as a line of its own, so nothing more can be
        // answered.
        if length as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
            return Err(Failure::bad_input(
                "line_too_long",
                "a line is longer than 1 GiB",
            ));
        }
        let answered = decode_line(&line).and_then(&mut answer);
        let json = answered.unwrap_or_else(|failure| {
            // The failure is an answer too; the exit code tells that there was one.
            exit = Exit::Findings;
            failure.to_json().to_string()
        });
        out.write_all(json.as_bytes())?;
        out.write_all(b"\n")?;
        // Whoever waits for this answer before the next line must get it.
        if !has_buffered_line(input) {
            out.flush()?;
        }
    }
}

fn decode_line(line: &[u8]) -> Outcome<&str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // Files from Windows.
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        Failure::bad_input(
            "not_text",
            format!("not UTF-8: byte {at} of the line is not text"),
        )
    })?;
    if text.trim().is_empty() {
        return Err(Failure::bad_input(
            "empty_line",
            "an empty line, expected a JSON document",
        ));
    }
    Ok(text)
}

/// Whether a whole line is there already, without reading on.
fn has_buffered_line(input: &BufReader<impl Read>) -> bool {
    input.buffer().contains(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expected: &str, exit: Exit) {
        let mut out = Vec::new();
        let mut input = BufReader::with_capacity(4, input);
        let ended = answer_each_line(&mut input, &mut out, |line| match line {
            "bad" => Err(Failure::bad_input("bad", "no")),
            line => Ok(line.to_uppercase()),
        });
        assert_eq!(ended.ok(), Some(exit));
        assert_eq!(String::from_utf8(out).ok().as_deref(), Some(expected));
    }

    #[test]
    fn one_line_in_one_line_out() {
        check(b"", "", Exit::Done);
        check(b"a\nb", "A\nB\n", Exit::Done);
        check(b"a\r\nb\n", "A\nB\n", Exit::Done);
        let bad = "{\"error\":{\"kind\":\"bad\",\"message\":\"no\"}}\n";
        check(b"bad\nb\n", &format!("{bad}B\n"), Exit::Findings);
    }

    #[test]
    fn empty_lines_and_bytes_that_are_not_text_are_bad_lines() {
        let empty = "{\"error\":{\"kind\":\"empty_line\",\"message\":\"an empty line, expected a JSON document\"}}\n";
        check(b"\na\n", &format!("{empty}A\n"), Exit::Findings);
        let broken = "{\"error\":{\"kind\":\"not_text\",\"message\":\"not UTF-8: byte 1 of the line is not text\"}}\n";
        check(b"a\xffb\nc", &format!("{broken}C\n"), Exit::Findings);
    }
}
