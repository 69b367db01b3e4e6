//! A number of tokens and how far it can be trusted.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// How a count came about, best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountKind {
    /// The provider's own vocabulary: `low`, `count` and `high` are equal.
    #[default]
    Exact,
    /// An estimate fitted to what the provider reported.
    Calibrated,
    /// An estimate from published rules or ratios.
    Estimated,
}

/// A number of tokens between two bounds; `low <= count <= high`.
///
/// Counts add up field by field, and a sum is as good as its worst part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TokenCount {
    /// The best single number.
    pub count: u64,
    /// Hardly fewer than this.
    pub low: u64,
    /// Hardly more than this; what budgets go by.
    pub high: u64,
    /// How it came about.
    pub kind: CountKind,
}

impl TokenCount {
    /// No tokens, exactly.
    pub const ZERO: Self = Self::exact(0);

    /// Exactly so many tokens.
    #[must_use]
    pub const fn exact(count: u64) -> Self {
        Self {
            count,
            low: count,
            high: count,
            kind: CountKind::Exact,
        }
    }

    /// About `count` tokens; bounds on the wrong side of `count` are moved to it.
    #[must_use]
    pub fn estimate(low: u64, count: u64, high: u64) -> Self {
        Self {
            count,
            low: low.min(count),
            high: high.max(count),
            kind: CountKind::Estimated,
        }
    }

    /// Whether the number is certain.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.kind == CountKind::Exact
    }
}

impl Add for TokenCount {
    type Output = Self;

    // Saturating: counts come from headers of files that may lie.
    fn add(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
            kind: self.kind.max(other.kind),
        }
    }
}

impl AddAssign for TokenCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for TokenCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}
