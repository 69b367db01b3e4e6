//! Figures and counts in the words of reports, for whoever writes beside them.
//!
//! Not here: what is said of a report.

/// Thousands apart: `13,986`.
#[must_use]
pub fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 item`, `1,204 items`.
#[must_use]
pub fn count_with_noun(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", group_thousands(count))
}

/// What cannot be shown as it is: control characters, and marks that turn the direction of what follows.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line: control characters and runs of white space become one space, so that nothing in a
/// stored message can move the cursor or colour the screen.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut space = true;
    for c in text.chars() {
        let blank = c.is_whitespace() || is_unsafe(c);
        match (blank, space) {
            (true, true) => {}
            (true, false) => out.push(' '),
            (false, _) => out.push(c),
        }
        space = blank;
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_easy_to_read() {
        assert_eq!(group_thousands(0), "0");
        assert_eq!(group_thousands(999), "999");
        assert_eq!(group_thousands(1_234_567), "1,234,567");
        assert_eq!(count_with_noun(1, "item"), "1 item");
        assert_eq!(count_with_noun(1_204, "item"), "1,204 items");
    }
}
