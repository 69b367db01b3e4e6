//! Indentation.

/// Appends spaces.
pub(crate) fn push_spaces(out: &mut String, count: usize) {
    const SPACES: &str = "                                                                ";
    let mut left = count;
    while left > 0 {
        let some = SPACES.get(..left).unwrap_or(SPACES);
        out.push_str(some);
        left -= some.len();
    }
}
