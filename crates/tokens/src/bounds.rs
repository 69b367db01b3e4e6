//! A token count with a lower and an upper bound, and the arithmetic of such counts.
//!
//! Everything saturates: a request that is absurdly long stays absurdly long and never wraps into one that fits.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use crate::count::TokenCount;

/// A number of tokens between two bounds, which are equal where counting is exact. Budgets hold against `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBounds {
    /// The lower bound.
    pub low: u64,
    /// The upper bound, against which budgets hold.
    pub high: u64,
}

impl TokenBounds {
    /// Bounds of no tokens at all.
    pub const ZERO: Self = Self { low: 0, high: 0 };

    /// A count between a lower and an upper bound.
    #[must_use]
    pub const fn between(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The middle between the bounds: the best single figure.
    #[must_use]
    pub const fn midpoint(self) -> u64 {
        self.low.midpoint(self.high)
    }

    /// The count multiplied, for parts that are repeated.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self {
            low: self.low.saturating_mul(count),
            high: self.high.saturating_mul(count),
        }
    }
}

impl From<TokenCount> for TokenBounds {
    fn from(count: TokenCount) -> Self {
        Self {
            low: count.low,
            high: count.high,
        }
    }
}

impl Add for TokenBounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }
}

impl AddAssign for TokenBounds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Stops at zero.
impl Sub for TokenBounds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_sub(other.low),
            high: self.high.saturating_sub(other.high),
        }
    }
}

impl Sum for TokenBounds {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}
