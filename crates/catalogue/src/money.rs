//! Money, exactly: sums, how they are stored, how they are shown.
//!
//! Not here: prices, and what tokens cost by them ([`crate::price`]).

use std::fmt;
use std::ops::{Add, AddAssign};

use contexture_text::truncate_chars;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::price::write_decimal;

/// A sum of money: whole pico-dollars (10⁻¹²), which is what a token costs is counted in, so that nothing is rounded.
/// Sums end at the largest there is.
///
/// Stored as decimal dollars, which every reader of JSON keeps whole; shown with a dollar sign.
///
/// ```
/// use contexture_catalogue::Money;
///
/// let cost = Money::from_micro_dollars(12_300);
/// assert_eq!(cost.to_string(), "$0.0123");
/// assert_eq!("0.0123".parse(), Ok(cost));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u128);

/// Why a text is no sum of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no sum of money: expected dollars with at most 12 decimals, such as 0.75")]
pub struct MoneyError {
    /// The text, cut to 40 characters.
    pub found: String,
}

const DECIMALS: usize = 12;
const DOLLAR: u128 = 1_000_000_000_000;

impl Money {
    /// An amount of nothing.
    pub const ZERO: Self = Self(0);

    /// So many pico-dollars.
    #[must_use]
    pub const fn from_pico_dollars(pico: u128) -> Self {
        Self(pico)
    }

    /// So many millionths of a dollar.
    #[must_use]
    pub const fn from_micro_dollars(micro: u64) -> Self {
        Self(micro as u128 * 1_000_000)
    }

    /// So many dollars, as a program or provider says it in a float: rounded to the pico-dollar. `None` for what is no
    /// number, or less than nothing.
    ///
    /// ```
    /// use contexture_catalogue::Money;
    ///
    /// let tip = Money::from_dollars(0.5).map(Money::pico_dollars);
    /// assert_eq!(tip, Some(500_000_000_000));
    /// assert_eq!(Money::from_dollars(-0.5), None);
    /// ```
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        // A float prints as the shortest decimal that names it; a product with 10¹² would be off at its end.
        let sound = dollars.is_finite() && dollars >= 0.0;
        sound.then(|| format!("{dollars:.DECIMALS$}").parse().ok())?
    }

    /// The amount in pico-dollars.
    #[must_use]
    pub const fn pico_dollars(self) -> u128 {
        self.0
    }

    /// Formats dollars exactly, without their sign: `0.75`.
    ///
    /// ```
    /// use contexture_catalogue::Money;
    ///
    /// assert_eq!(Money::from_micro_dollars(750_000).to_decimal_string(), "0.75");
    /// ```
    #[must_use]
    pub fn to_decimal_string(self) -> String {
        let mut shown = self.to_string();
        shown.retain(|c| c != '$');
        shown
    }

    /// Formats dollars with four decimals, halves rounded up: `$0.0019`.
    #[must_use]
    pub fn to_rounded_string(self) -> String {
        let ten_thousandths = self.0.saturating_add(50_000_000) / 100_000_000;
        format!(
            "${}.{:04}",
            ten_thousandths / 10_000,
            ten_thousandths % 10_000
        )
    }

    /// Formats dollars to a tenth of a cent, or to a millionth where that would be nothing; the rest is cut off.
    #[must_use]
    pub fn to_short_string(self) -> String {
        // In integers, as prices are; what is smaller than a micro-dollar is not shown.
        let micro = self.0 / 1_000_000;
        let (whole, part) = (micro / 1_000_000, micro % 1_000_000);
        if micro >= 1_000 {
            format!("${whole}.{:03}", part / 1_000)
        } else {
            format!("${whole}.{part:06}")
        }
    }

    /// What is left after taking so much away; nothing if that was more.
    #[must_use]
    pub const fn saturating_sub(self, taken: Self) -> Self {
        Self(self.0.saturating_sub(taken.0))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Money {
    /// Exact dollars without trailing zeros: `$0.01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        write_decimal(f, self.0, DECIMALS)
    }
}

impl std::str::FromStr for Money {
    type Err = MoneyError;

    /// Reads decimal dollars, without a sign.
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let read = || {
            let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if !digits(whole) || !digits(rest) || rest.len() > DECIMALS {
                return None;
            }
            let whole: u128 = whole.parse().ok()?;
            let rest: u128 = format!("{rest:0<DECIMALS$}").parse().ok()?;
            Some(Self(whole.checked_mul(DOLLAR)?.checked_add(rest)?))
        };
        read().ok_or_else(|| MoneyError {
            found: truncate_chars(text, 40),
        })
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_decimal_string())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_they_are_written() {
        for (text, pico) in [
            ("0", 0),
            ("0.000000000001", 1),
            ("1.5", 1_500_000_000_000),
            ("18000000", 18_000_000_000_000_000_000),
        ] {
            let money: Money = text.parse().unwrap();
            assert_eq!(money.pico_dollars(), pico);
            let json = serde_json::to_string(&money).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<Money>(&json).unwrap(), money);
        }
        let most = Money::from_pico_dollars(u128::MAX);
        assert_eq!(most + most, most);
        assert_eq!(most.to_string().trim_start_matches('$').parse(), Ok(most));
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "$1",
            "0.0000000000001",
        ] {
            assert!(bad.parse::<Money>().is_err(), "{bad}");
        }
        assert!("9".repeat(60).parse::<Money>().is_err());
    }

    #[test]
    fn rounded_and_short_strings_are_of_the_same_sum() {
        for (pico, rounded, short) in [
            (0, "$0.0000", "$0.000000"),
            (1_900_000_000, "$0.0019", "$0.001"),
            (12_345_678, "$0.0000", "$0.000012"),
            (3_000_000_000_000, "$3.0000", "$3.000"),
            (u128::from(u64::MAX), "$18446744.0737", "$18446744.073"),
        ] {
            let money = Money::from_pico_dollars(pico);
            assert_eq!(money.to_rounded_string(), rounded);
            assert_eq!(money.to_short_string(), short);
        }
    }

    #[test]
    fn floats_are_taken_for_what_they_were_written_as() {
        let of = |dollars| Money::from_dollars(dollars).map(Money::pico_dollars);
        assert_eq!(of(0.1), Some(100_000_000_000));
        assert_eq!(of(1.23e-5), Some(12_300_000));
        assert_eq!(of(4e-13), Some(0));
        for bad in [-0.5, f64::NAN, f64::INFINITY, f64::MAX] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
