//! Limits on what a run may use.
//!
//! There are two checks. [`RunBudget::check_usage`] fails if usage is *above* a limit: a run that used exactly its
//! budget is within it. [`RunBudget::check_next`] fails once a limit is *reached*, because any further step would
//! exceed it. A call in progress may exceed a limit; its cost is counted all the same.
//!
//! Not here: counting ([`crate::RunUsage`]), and ending the run.

use contexture_catalogue::Money;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::usage::RunUsage;

/// Limits of a run; an absent limit does not apply. The default has none.
///
/// ```
/// use contexture_runs::{RunBudget, RunUsage};
///
/// let budget = RunBudget { steps: Some(2), ..RunBudget::default() };
/// let spent = RunUsage { steps: 2, ..RunUsage::default() };
/// assert!(budget.check_usage(&spent).is_ok());
/// let error = budget.check_next(&spent).unwrap_err();
/// assert_eq!(error.to_string(), "the budget of steps is used up: 2 of 2");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunBudget {
    /// Input and output tokens, cached ones included, as far as calls report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost. Calls without a known price count as zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Steps, those of children included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Answers of models, children included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<u64>,
    /// Time since the start, waiting included; stored in whole microseconds. After a resume, time between the last
    /// stored node and the resume does not count.
    #[serde(
        rename = "time_us",
        with = "crate::limits::usage::duration_micros::maybe",
        skip_serializing_if = "Option::is_none"
    )]
    pub time: Option<Duration>,
}

/// What a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BudgetKind {
    /// The limit on tokens.
    Tokens,
    /// The limit on cost.
    Cost,
    /// The limit on steps.
    Steps,
    /// Answers of models.
    Responses,
    /// The limit on time.
    Time,
}

/// Value of a limit, or of the usage compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetValue {
    /// A number of tokens, steps or responses.
    Count(u64),
    /// An amount of money.
    Money(Money),
    /// A length of time.
    Time(Duration),
}

/// A limit is exceeded, or reached where more would be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget of {kind} is used up: {actual} of {limit}")]
pub struct Exceeded {
    /// The limit that is exceeded.
    pub kind: BudgetKind,
    /// Value of the limit.
    pub limit: BudgetValue,
    /// What was spent.
    pub actual: BudgetValue,
}

impl RunBudget {
    /// Checks that usage is not above any limit; reaching one is allowed.
    ///
    /// # Errors
    /// [`Exceeded`] for the first limit that is passed, in the order of the fields.
    pub fn check_usage(&self, usage: &RunUsage) -> Result<(), Exceeded> {
        self.first_exceeded(usage, |line| line.passed)
    }

    /// Checks that more work may start: usage is below every limit.
    ///
    /// # Errors
    /// [`Exceeded`] for the first limit that is reached, in the order of the fields.
    pub fn check_next(&self, usage: &RunUsage) -> Result<(), Exceeded> {
        self.first_exceeded(usage, |line| line.reached)
    }

    /// Returns what is left of the budget.
    #[must_use]
    pub fn remaining(&self, usage: &RunUsage) -> Self {
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        Self {
            tokens: left(self.tokens, usage.tokens.total()),
            cost: self
                .cost
                .map(|limit| limit.saturating_sub(usage.cost.unwrap_or_default())),
            steps: left(self.steps, usage.steps),
            responses: left(self.responses, usage.responses),
            time: self.time.map(|limit| limit.saturating_sub(usage.elapsed)),
        }
    }

    /// Returns the budget of a child that asks for `wanted`: never more than is left here.
    #[must_use]
    pub(crate) fn limit_child(&self, usage: &RunUsage, wanted: &Self) -> Self {
        fn min_limit<T: Ord>(left: Option<T>, wanted: Option<T>) -> Option<T> {
            match (left, wanted) {
                (Some(left), Some(wanted)) => Some(left.min(wanted)),
                (left, wanted) => left.or(wanted),
            }
        }
        // What is left now, not the whole budget. Usage of children that run at the same time and were not joined yet
        // is not known here.
        let left = self.remaining(usage);
        Self {
            tokens: min_limit(left.tokens, wanted.tokens),
            cost: min_limit(left.cost, wanted.cost),
            steps: min_limit(left.steps, wanted.steps),
            responses: min_limit(left.responses, wanted.responses),
            time: min_limit(left.time, wanted.time),
        }
    }

    fn first_exceeded(
        &self,
        usage: &RunUsage,
        over: impl Fn(&LimitCheck) -> bool,
    ) -> Result<(), Exceeded> {
        let count =
            |what, limit: Option<u64>, used| check_limit(what, limit, used, BudgetValue::Count);
        // In the order of the fields, so that the same usage always reports the same limit.
        let lines = [
            count(BudgetKind::Tokens, self.tokens, usage.tokens.total()),
            check_limit(
                BudgetKind::Cost,
                self.cost,
                usage.cost.unwrap_or_default(),
                BudgetValue::Money,
            ),
            count(BudgetKind::Steps, self.steps, usage.steps),
            count(BudgetKind::Responses, self.responses, usage.responses),
            check_limit(
                BudgetKind::Time,
                self.time,
                usage.elapsed,
                BudgetValue::Time,
            ),
        ];
        let found = lines.into_iter().flatten().find(|line| over(line));
        found.map_or(Ok(()), |line| Err(line.error))
    }
}

/// One limit compared with the usage.
struct LimitCheck {
    reached: bool,
    passed: bool,
    error: Exceeded,
}

fn check_limit<T: Ord + Copy>(
    what: BudgetKind,
    limit: Option<T>,
    used: T,
    amount: fn(T) -> BudgetValue,
) -> Option<LimitCheck> {
    limit.map(|limit| LimitCheck {
        reached: used >= limit,
        passed: used > limit,
        error: Exceeded {
            kind: what,
            limit: amount(limit),
            actual: amount(used),
        },
    })
}

impl fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "tokens",
            Self::Cost => "money",
            Self::Steps => "steps",
            Self::Responses => "answers",
            Self::Time => "time",
        })
    }
}

impl fmt::Display for BudgetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Money(money) => money.fmt(f),
            Self::Time(time) => write!(f, "{:.1} s", time.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::usage::Tokens;

    fn usage() -> RunUsage {
        RunUsage {
            tokens: Tokens {
                input: Some(90),
                output: Some(10),
                cache_read: Some(80),
                ..Tokens::default()
            },
            cost: Some(Money::from_micro_dollars(100)),
            responses: 100,
            unpriced: 0,
            steps: 100,
            elapsed: Duration::from_micros(100),
        }
    }

    /// A limit of `n` on one thing, where 100 of each were spent.
    fn limits(n: u64) -> [(BudgetKind, RunBudget); 5] {
        let none = RunBudget::default();
        let money = Money::from_micro_dollars(n);
        [
            (
                BudgetKind::Tokens,
                RunBudget {
                    tokens: Some(n),
                    ..none
                },
            ),
            (
                BudgetKind::Cost,
                RunBudget {
                    cost: Some(money),
                    ..none
                },
            ),
            (
                BudgetKind::Steps,
                RunBudget {
                    steps: Some(n),
                    ..none
                },
            ),
            (
                BudgetKind::Responses,
                RunBudget {
                    responses: Some(n),
                    ..none
                },
            ),
            (
                BudgetKind::Time,
                RunBudget {
                    time: Some(Duration::from_micros(n)),
                    ..none
                },
            ),
        ]
    }

    #[test]
    fn a_limit_may_be_reached_but_not_begun_at() {
        for (limit, passed, reached) in [(99, true, true), (100, false, true), (101, false, false)]
        {
            for (what, budget) in limits(limit) {
                let told = |result: Result<(), Exceeded>| result.err().map(|error| error.kind);
                assert_eq!(
                    told(budget.check_usage(&usage())),
                    passed.then_some(what),
                    "{limit}"
                );
                assert_eq!(
                    told(budget.check_next(&usage())),
                    reached.then_some(what),
                    "{limit}"
                );
            }
        }
        let zero = limits(0).map(|(_, budget)| budget.check_next(&RunUsage::default()).is_err());
        assert_eq!(zero, [true; 5]);
        assert_eq!(RunBudget::default().check_next(&usage()), Ok(()));
    }

    #[test]
    fn the_stored_form_is_small_and_stable() {
        assert_eq!(serde_json::to_string(&RunBudget::default()).unwrap(), "{}");
        let budget = RunBudget {
            tokens: Some(1),
            cost: Some(Money::from_micro_dollars(20_000)),
            time: Some(Duration::from_millis(2)),
            ..RunBudget::default()
        };
        let json = serde_json::to_string(&budget).unwrap();
        assert_eq!(json, r#"{"tokens":1,"cost":"0.02","time_us":2000}"#);
        assert_eq!(serde_json::from_str::<RunBudget>(&json).unwrap(), budget);
        assert_eq!(
            serde_json::from_str::<RunBudget>("{}").unwrap(),
            RunBudget::default()
        );
    }

    #[test]
    fn what_is_not_known_costs_nothing() {
        let [tokens, cost, ..] = limits(1).map(|(_, budget)| budget);
        assert_eq!(tokens.check_next(&RunUsage::default()), Ok(()));
        assert_eq!(cost.check_next(&RunUsage::default()), Ok(()));
    }

    #[test]
    fn a_child_never_has_more_than_is_left() {
        for (wanted, expected) in [(20, 20), (30, 30), (31, 30)] {
            let parents = limits(130).into_iter().zip(limits(wanted));
            for (((what, parent), (_, wanted)), (_, expected)) in parents.zip(limits(expected)) {
                assert_eq!(parent.limit_child(&usage(), &wanted), expected, "{what}");
            }
        }
        let (_, parent) = limits(130)[2];
        let child = |steps| {
            parent
                .limit_child(
                    &usage(),
                    &RunBudget {
                        steps,
                        ..RunBudget::default()
                    },
                )
                .steps
        };
        assert_eq!(
            [None, Some(7), Some(40)].map(child),
            [Some(30), Some(7), Some(30)]
        );
        let (_, used_up) = limits(50)[0];
        assert_eq!(
            used_up.limit_child(&usage(), &RunBudget::default()).tokens,
            Some(0)
        );
        let (_, no_limit_here) = limits(9)[3];
        assert_eq!(
            RunBudget::default().limit_child(&usage(), &no_limit_here),
            no_limit_here
        );
    }
}
