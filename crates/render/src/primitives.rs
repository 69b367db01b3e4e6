//! Primitives that several formats write alike: numbers as ECMAScript prints them, and indentation.

use std::fmt::Write as _;

use serde_json::Number;

/// Writes a number the way `String(x)` does in ECMAScript (ECMA-262, `Number::toString`): the
/// shortest digits that read back as the same float, in full from 1e-6 up to 1e21, else with an
/// exponent; `-0` is `0`. Integers are exact, also beyond 2^53.
pub(crate) fn write_number(out: &mut String, number: &Number) {
    // Writing into a `String` cannot fail.
    let _ = if let Some(integer) = number.as_u64() {
        write!(out, "{integer}")
    } else if let Some(integer) = number.as_i64() {
        write!(out, "{integer}")
    } else if let Some(float) = number.as_f64() {
        write_float(out, float);
        Ok(())
    } else {
        write!(out, "{number}")
    };
}

fn write_float(out: &mut String, float: f64) {
    if float == 0.0 {
        return out.push('0');
    }
    // `{:e}` prints the shortest digits: `-1.25e-7`.
    let scientific = format!("{:e}", float.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if float < 0.0 {
        out.push('-');
    }
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent + 1;
    let zeros = |n: i32| std::iter::repeat_n('0', usize::try_from(n).unwrap_or(0));
    // A whole number below 1e21: digits, then zeros.
    if (count..=21).contains(&point) {
        out.push_str(&digits);
        out.extend(zeros(point - count));
    // The point falls within the digits.
    } else if (1..=21).contains(&point) {
        let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
        out.push_str(whole);
        out.push('.');
        out.push_str(rest);
    // Small, but not below 1e-6.
    } else if (-5..=0).contains(&point) {
        out.push_str("0.");
        out.extend(zeros(-point));
        out.push_str(&digits);
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{}", exponent.abs());
    }
}

/// Appends this many spaces.
pub(crate) fn push_spaces(out: &mut String, count: usize) {
    // Copied in blocks of 64: most indentations take one step.
    const SPACES: &str = "                                                                ";
    let mut left = count;
    while left > 0 {
        let some = SPACES.get(..left).unwrap_or(SPACES);
        out.push_str(some);
        left -= some.len();
    }
}

#[cfg(test)]
mod tests {
    use super::write_number;

    fn check(json: &str, expected: &str) {
        let mut out = String::new();
        write_number(&mut out, &serde_json::from_str(json).unwrap());
        assert_eq!(out, expected, "{json}");
    }

    #[test]
    fn prints_as_ecmascript_does() {
        check("0", "0");
        check("-0.0", "0");
        check("1.0", "1");
        check("-12.50", "-12.5");
        check("1e21", "1e+21");
        check("1e20", "100000000000000000000");
        check("123456789012345680000", "123456789012345680000");
        check("1e-6", "0.000001");
        check("1e-7", "1e-7");
        check("1.5e-7", "1.5e-7");
        check("-1.25e300", "-1.25e+300");
        check("5e-324", "5e-324");
        check("0.1", "0.1");
        check("123.456", "123.456");
        check("9007199254740993", "9007199254740993");
        check("18446744073709551615", "18446744073709551615");
        check("-9223372036854775808", "-9223372036854775808");
    }
}
