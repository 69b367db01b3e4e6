//! Figures and counts in the words of reports, for whoever writes beside them.
//!
//! Not here: what is said of a report; sums of money (`contexture_catalogue::Money`).

pub use contexture_text::{is_unsafe, one_printable_line as one_line};

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
