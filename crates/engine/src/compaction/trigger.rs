//! When the history is compacted automatically.

/// The size above which the history is compacted before a call.
///
/// Whatever the trigger, a history that was trimmed or refused is compacted too. The proxy does not use it: there a policy
/// compacts when the request is over the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// So many per cent of the space of a request: window minus reserve.
    Share(u8),
    /// So many tokens.
    Tokens(u64),
    /// The whole space of a request: only what no longer fits is compacted.
    Overflow,
}

impl Default for Trigger {
    /// 85 per cent.
    fn default() -> Self {
        Self::Share(85)
    }
}

/// What the provider said of a call, beside what was counted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedUsage {
    /// The input tokens that were reported.
    pub tokens: u64,
    /// The tokens that were counted for the same payload: `report.totals.tokens`.
    pub counted: u64,
}

/// Which token figure decides when both are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsagePreference {
    /// The larger of the two.
    #[default]
    Max,
    /// The reported one, the counted one where none was reported.
    ReportedFirst,
    /// The counted one.
    CountedFirst,
}

/// Returns the factor, in thousandths, from our count to the provider's: 1,000 where nothing is known.
pub(crate) fn usage_scale(reported: Option<ReportedUsage>, preference: UsagePreference) -> u64 {
    let Some(reported) = reported.filter(|one| one.counted > 0) else {
        return 1_000;
    };
    // Per mille in integers: the same decision on every machine.
    let scale = reported.tokens.saturating_mul(1_000) / reported.counted;
    match preference {
        UsagePreference::Max => scale.max(1_000),
        UsagePreference::ReportedFirst => scale.max(1),
        UsagePreference::CountedFirst => 1_000,
    }
}

/// Reports whether a history of `counted` tokens is larger than the trigger allows in a request of `space` tokens.
/// `scale` is what [`usage_scale`] returned.
pub(crate) fn should_compact(trigger: Trigger, counted: u64, space: u64, scale: u64) -> bool {
    let used = apply_per_mille(counted, scale);
    match trigger {
        Trigger::Share(percent) => used > percent_of(space, percent),
        Trigger::Tokens(most) => used > most,
        Trigger::Overflow => used > space,
    }
}

/// Above which size in our tokens a trigger fires, in a request of `space` tokens.
pub(crate) fn trigger_size(trigger: Trigger, space: u64, scale: u64) -> u64 {
    let size = match trigger {
        Trigger::Share(percent) => percent_of(space, percent),
        Trigger::Tokens(most) => most,
        Trigger::Overflow => space,
    };
    // What is above the space is cut before the trigger fires.
    let size = u128::from(size.min(space)) * 1_000 / u128::from(scale.max(1));
    u64::try_from(size).unwrap_or(u64::MAX).min(space)
}

/// A count at a scale of per mille.
pub(crate) fn apply_per_mille(counted: u64, scale: u64) -> u64 {
    // Multiplied in 128 bits, as token counts near the limit of 64 would overflow.
    u64::try_from(u128::from(counted) * u128::from(scale) / 1_000).unwrap_or(u64::MAX)
}

/// So many per cent of a figure.
pub(crate) fn percent_of(of: u64, percent: u8) -> u64 {
    apply_per_mille(of, u64::from(percent) * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_scales_what_is_counted() {
        let reported = Some(ReportedUsage {
            tokens: 150,
            counted: 100,
        });
        let less = Some(ReportedUsage {
            tokens: 50,
            counted: 100,
        });
        assert_eq!(usage_scale(reported, UsagePreference::Max), 1_500);
        assert_eq!(usage_scale(less, UsagePreference::Max), 1_000);
        assert_eq!(usage_scale(less, UsagePreference::ReportedFirst), 500);
        assert_eq!(usage_scale(reported, UsagePreference::CountedFirst), 1_000);
        assert_eq!(usage_scale(None, UsagePreference::ReportedFirst), 1_000);
        assert!(should_compact(Trigger::Share(100), 80, 100, 1_500));
        assert!(!should_compact(Trigger::Share(100), 80, 100, 1_000));
        assert!(should_compact(Trigger::Tokens(50), 51, 100, 1_000));
        assert!(!should_compact(Trigger::Overflow, 100, 100, 1_000));
        assert!(!should_compact(Trigger::default(), u64::MAX, u64::MAX, 500));
        assert_eq!(trigger_size(Trigger::default(), 1_000, 1_000), 850);
        assert_eq!(trigger_size(Trigger::Tokens(800), 1_000, 2_000), 400);
        assert_eq!(trigger_size(Trigger::Tokens(u64::MAX), 1_000, 1), 1_000);
    }
}
