//! Stop conditions: when the step loop of a run ends.
//!
//! A [`StopCondition`] evaluates a [`Snapshot`] after each answer and says whether to stop, and why. Conditions are
//! combined by [`any`](StopCondition::any), [`all`](StopCondition::all) and [`not`](StopCondition::not). One that fails
//! or panics stops the loop, however it is combined, because its result is unknown.
//!
//! ```
//! use std::time::Duration;
//!
//! use contexture_runs::StopCondition;
//!
//! let is_over = StopCondition::any([
//!     StopCondition::no_tool_calls(),
//!     StopCondition::output_equals("DONE"),
//!     StopCondition::output_unchanged(),
//!     StopCondition::max_duration(Duration::from_secs(600)),
//! ]);
//! # let _ = is_over;
//! ```
//!
//! Not here: hard limits, which an agent cannot override ([`crate::RunBudget`]).

use contexture_catalogue::Money;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use contexture_ir::FunctionCall;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::limits::usage::RunUsage;
use crate::tasks::panic_message;

/// State of the step loop after an answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Snapshot<'a> {
    /// Number of steps taken.
    pub steps: u64,
    /// Usage of the run, children included.
    pub usage: &'a RunUsage,
    /// Time since the run started.
    pub elapsed: Duration,
    /// The text of the last answer.
    pub text: Option<&'a str>,
    /// The calls of the last answer that have no output yet.
    pub calls: &'a [FunctionCall],
    /// Texts of the answers that called no tool, oldest first.
    pub outputs: &'a [String],
    /// Depth of the run; a root run has depth 0.
    pub depth: usize,
}

impl<'a> Snapshot<'a> {
    /// Creates a snapshot of this many steps and this usage; set the other fields afterwards.
    #[must_use]
    pub fn new(steps: u64, spent: &'a RunUsage) -> Self {
        Self {
            steps,
            usage: spent,
            elapsed: Duration::ZERO,
            text: None,
            calls: &[],
            outputs: &[],
            depth: 0,
        }
    }

    /// The last output, or the text of the last answer if there is no output.
    #[must_use]
    pub fn output(&self) -> Option<&'a str> {
        self.outputs.last().map(String::as_str).or(self.text)
    }
}

/// A [`Snapshot`] that a judge may keep while it works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OwnedSnapshot {
    /// Number of steps taken.
    pub steps: u64,
    /// Usage of the run, children included.
    pub usage: RunUsage,
    /// Time since the run started.
    pub elapsed: Duration,
    /// The text of the last answer.
    pub text: Option<String>,
    /// The calls of the last answer that have no output yet.
    pub calls: Vec<FunctionCall>,
    /// Texts of the answers that called no tool, oldest first.
    pub outputs: Vec<String>,
    /// Depth of the run; a root run has depth 0.
    pub depth: usize,
}

impl OwnedSnapshot {
    /// The last output, or the text of the last answer if there is no output.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        self.outputs
            .last()
            .map(String::as_str)
            .or(self.text.as_deref())
    }
}

impl From<&Snapshot<'_>> for OwnedSnapshot {
    fn from(now: &Snapshot<'_>) -> Self {
        Self {
            steps: now.steps,
            usage: *now.usage,
            elapsed: now.elapsed,
            text: now.text.map(str::to_owned),
            calls: now.calls.to_vec(),
            outputs: now.outputs.to_vec(),
            depth: now.depth,
        }
    }
}

/// Result of a stop condition that was met or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReason {
    /// Why, for people and logs.
    pub reason: String,
    /// Whether the condition was met, or failed.
    pub cause: StopCause,
}

/// Why a loop stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopCause {
    /// The condition was met.
    Met,
    /// The condition's predicate failed or panicked.
    Failed,
}

type PredicateResult = Result<Option<String>, String>;

type Predicate = dyn for<'a> Fn(&'a Snapshot<'a>) -> BoxFuture<'a, PredicateResult> + Send + Sync;

/// A named predicate that says when to stop.
///
/// ```
/// use contexture_runs::{Snapshot, RunUsage, StopCondition};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let until = StopCondition::max_steps(10).or(StopCondition::output_contains("DONE"));
/// let spent = RunUsage::default();
/// let mut now = Snapshot::new(3, &spent);
/// assert_eq!(until.evaluate(&now).await, None);
/// now.text = Some("all DONE");
/// assert_eq!(until.evaluate(&now).await.unwrap().reason, r#"the output contains "DONE""#);
/// # }
/// ```
#[derive(Clone)]
pub struct StopCondition {
    name: Arc<str>,
    predicate: Arc<Predicate>,
}

impl StopCondition {
    /// Creates a condition from a predicate: an error stops the loop, as a panic does.
    #[must_use]
    pub fn new<E: fmt::Display>(
        name: impl Into<Arc<str>>,
        holds: impl Fn(&Snapshot<'_>) -> Result<bool, E> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let reason = name.to_string();
        Self::from_predicate(name, move |now| {
            let held = catch_unwind(AssertUnwindSafe(|| holds(now)));
            match held.map_err(|panic| panic_message(&*panic))? {
                Ok(held) => Ok(held.then(|| reason.clone())),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    /// Creates a condition from a predicate that takes its time, such as a model that judges the output. It is asked after each
    /// answer; an abort of the run cuts it off, and an error stops the loop, as a panic does. What a judge spends is not counted
    /// in the run's usage.
    ///
    /// ```
    /// use contexture_runs::{OwnedSnapshot, StopCondition};
    ///
    /// let is_good = StopCondition::new_async("the judge is content", |now: OwnedSnapshot| async move {
    ///     // Most answers only call tools: nothing to judge.
    ///     let Some(output) = now.outputs.last() else { return Ok(false) };
    ///     // Here a model would be asked.
    ///     Ok::<_, std::io::Error>(output.len() > 100)
    /// });
    /// let until = is_good.or(StopCondition::max_steps(20));
    /// ```
    #[must_use]
    pub fn new_async<E: fmt::Display, F: Future<Output = Result<bool, E>> + Send + 'static>(
        name: impl Into<Arc<str>>,
        holds: impl Fn(OwnedSnapshot) -> F + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let reason = name.to_string();
        let holds = Arc::new(holds);
        Self::with_predicate(name, move |now| {
            let (now, reason) = (OwnedSnapshot::from(now), reason.clone());
            let holds = Arc::clone(&holds);
            // Called inside, so that a panic before the first await is caught as well.
            let judging = AssertUnwindSafe(async move { holds(now).await }).catch_unwind();
            Box::pin(async move {
                match judging.await.map_err(|panic| panic_message(&*panic))? {
                    Ok(held) => Ok(held.then_some(reason)),
                    Err(error) => Err(error.to_string()),
                }
            })
        })
    }

    /// Never stops. A budget still ends the run.
    #[must_use]
    pub fn never() -> Self {
        from_infallible("never", |_| false)
    }

    /// Stops after this many steps.
    #[must_use]
    pub fn max_steps(steps: u64) -> Self {
        from_infallible(format!("{steps} steps are done"), move |now| {
            now.steps >= steps
        })
    }

    /// Stops once the run and its children have cost this much. Calls without a known price count as zero.
    #[must_use]
    pub fn max_cost(cost: Money) -> Self {
        from_infallible(format!("it has cost {cost}"), move |now| {
            now.usage.cost.is_some_and(|spent| spent >= cost)
        })
    }

    /// Stops once the run has taken this long.
    #[must_use]
    pub fn max_duration(time: Duration) -> Self {
        let name = format!("it has taken {:.1} s", time.as_secs_f64());
        from_infallible(name, move |now| now.elapsed >= time)
    }

    /// Stops once the last answer leaves no call to run.
    #[must_use]
    pub fn no_tool_calls() -> Self {
        from_infallible("no tool was called", |now| now.calls.is_empty())
    }

    /// Stops once two outputs in a row are equal.
    #[must_use]
    pub fn output_unchanged() -> Self {
        from_infallible(
            "the output is the same as before",
            |now| matches!(now.outputs, [.., before, last] if before == last),
        )
    }

    /// Stops once the output contains a text; case matters.
    #[must_use]
    pub fn output_contains(text: impl Into<String>) -> Self {
        let text = text.into();
        from_infallible(format!("the output contains {text:?}"), move |now| {
            now.output().is_some_and(|output| output.contains(&text))
        })
    }

    /// Stops once the output equals a text; case matters.
    #[must_use]
    pub fn output_equals(text: impl Into<String>) -> Self {
        let text = text.into();
        from_infallible(format!("the output is {text:?}"), move |now| {
            now.output() == Some(text.as_str())
        })
    }

    /// Stops if any of the conditions does; the reasons of all that do are joined by `; `. Never stops if there are
    /// none.
    #[must_use]
    pub fn any(all: impl IntoIterator<Item = Self>) -> Self {
        let all: Vec<Self> = all.into_iter().collect();
        let name = join_names(&all, " or ");
        Self::combine(name, all, |judged| {
            let reasons: Vec<String> = judged.into_iter().flatten().collect();
            (!reasons.is_empty()).then(|| reasons.join("; "))
        })
    }

    /// Stops if all conditions do at the same time; their reasons are joined by `; `. Never stops if there are none,
    /// since nothing asks for a stop.
    #[must_use]
    pub fn all(all: impl IntoIterator<Item = Self>) -> Self {
        let all: Vec<Self> = all.into_iter().collect();
        let name = join_names(&all, " and ");
        Self::combine(name, all, |judged| {
            let judged: Option<Vec<String>> = judged.into_iter().collect();
            let reasons = judged.filter(|reasons| !reasons.is_empty());
            reasons.map(|reasons| reasons.join("; "))
        })
    }

    /// Stops if this condition does not.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "`until.not()` reads as it is meant"
    )]
    pub fn not(self) -> Self {
        let reason = format!("not: {}", self.name);
        Self::combine(reason.clone(), vec![self], move |judged| {
            let met = judged.iter().any(Option::is_some);
            (!met).then(|| reason.clone())
        })
    }

    /// Stops if either of the two does.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::any([self, other])
    }

    /// Stops if both do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::all([self, other])
    }

    /// Evaluates the condition; `Some` means stop.
    pub async fn evaluate(&self, now: &Snapshot<'_>) -> Option<StopReason> {
        match (self.predicate)(now).await {
            Ok(reason) => reason.map(|reason| StopReason {
                reason,
                cause: StopCause::Met,
            }),
            Err(reason) => Some(StopReason {
                reason: format!("a predicate failed: {reason}"),
                cause: StopCause::Failed,
            }),
        }
    }

    fn from_predicate(
        name: impl Into<Arc<str>>,
        judge: impl Fn(&Snapshot<'_>) -> PredicateResult + Send + Sync + 'static,
    ) -> Self {
        Self::with_predicate(name, move |now| Box::pin(ready(judge(now))))
    }

    fn with_predicate(
        name: impl Into<Arc<str>>,
        predicate: impl for<'a> Fn(&'a Snapshot<'a>) -> BoxFuture<'a, PredicateResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            predicate: Arc::new(predicate),
        }
    }

    /// Creates a condition from the reasons that others give.
    fn combine(
        name: impl Into<Arc<str>>,
        all: Vec<Self>,
        judge: impl Fn(Vec<Option<String>>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new((all, judge));
        Self::with_predicate(name, move |now| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (all, judge) = &*shared;
                let mut judged = Vec::with_capacity(all.len());
                for until in all {
                    judged.push((until.predicate)(now).await?);
                }
                Ok(judge(judged))
            })
        })
    }
}

/// Creates a condition from a predicate that cannot fail.
fn from_infallible(
    name: impl Into<Arc<str>>,
    holds: impl Fn(&Snapshot<'_>) -> bool + Send + Sync + 'static,
) -> StopCondition {
    let name = name.into();
    let reason = name.to_string();
    StopCondition::from_predicate(name, move |now| Ok(holds(now).then(|| reason.clone())))
}

fn join_names(all: &[StopCondition], between: &str) -> String {
    let names: Vec<&str> = all.iter().map(|until| &*until.name).collect();
    if names.is_empty() {
        "never".to_owned()
    } else {
        format!("({})", names.join(between))
    }
}

impl fmt::Debug for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Until({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates a condition that does not wait.
    fn evaluate(until: &StopCondition, now: &Snapshot<'_>) -> Option<StopReason> {
        until.evaluate(now).now_or_never().unwrap()
    }

    fn told(until: &StopCondition, now: &Snapshot<'_>) -> Option<String> {
        evaluate(until, now).map(|stop| stop.reason)
    }

    fn call() -> FunctionCall {
        FunctionCall {
            id: None,
            call_id: "c".into(),
            name: "look".into(),
            arguments: "{}".into(),
            status: None,
            extra: contexture_ir::Extra::default(),
        }
    }

    #[test]
    fn each_stops_where_it_says() {
        let spent = RunUsage {
            cost: Some(Money::from_micro_dollars(10)),
            ..RunUsage::default()
        };
        let (calls, outputs) = ([call()], ["a", "b b", "b b"].map(str::to_owned));
        let now = Snapshot {
            elapsed: Duration::from_secs(5),
            text: Some("text"),
            calls: &calls,
            outputs: &outputs,
            depth: 1,
            ..Snapshot::new(3, &spent)
        };
        let cost = Money::from_micro_dollars;
        let seconds = Duration::from_secs;
        for (until, expected) in [
            (StopCondition::never(), None),
            (StopCondition::max_steps(4), None),
            (StopCondition::max_steps(3), Some("3 steps are done")),
            (StopCondition::max_cost(cost(11)), None),
            (
                StopCondition::max_cost(cost(10)),
                Some("it has cost $0.00001"),
            ),
            (StopCondition::max_duration(seconds(6)), None),
            (
                StopCondition::max_duration(seconds(5)),
                Some("it has taken 5.0 s"),
            ),
            (StopCondition::no_tool_calls(), None),
            (
                StopCondition::output_unchanged(),
                Some("the output is the same as before"),
            ),
            (StopCondition::output_contains("text"), None),
            (
                StopCondition::output_contains("b"),
                Some(r#"the output contains "b""#),
            ),
            (StopCondition::output_equals("b"), None),
            (
                StopCondition::output_equals("b b"),
                Some(r#"the output is "b b""#),
            ),
            (
                StopCondition::new("deep", |now| Ok::<_, String>(now.depth > 0)),
                Some("deep"),
            ),
        ] {
            assert_eq!(told(&until, &now).as_deref(), expected, "{until:?}");
        }
        let fresh = RunUsage::default();
        let start = Snapshot::new(0, &fresh);
        assert!(told(&StopCondition::no_tool_calls(), &start).is_some());
        assert_eq!(told(&StopCondition::max_cost(Money::ZERO), &start), None);
        assert_eq!(told(&StopCondition::output_unchanged(), &start), None);
        let one = Snapshot {
            outputs: &outputs[..1],
            ..start
        };
        assert_eq!(told(&StopCondition::output_unchanged(), &one), None);
        let changed = Snapshot {
            outputs: &outputs[..2],
            ..start
        };
        assert_eq!(told(&StopCondition::output_unchanged(), &changed), None);
        let spoken = Snapshot {
            text: Some("DONE"),
            ..start
        };
        assert!(told(&StopCondition::output_equals("DONE"), &spoken).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn judge_that_waits_combines_like_the_others() {
        let spent = RunUsage::default();
        let outputs = ["draft".to_owned()];
        let now = Snapshot {
            outputs: &outputs,
            ..Snapshot::new(3, &spent)
        };
        let judge = |content: &'static str| {
            StopCondition::new_async(
                format!("it is {content}"),
                move |now: OwnedSnapshot| async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    match now.output() {
                        Some("panic") => panic!("no output"),
                        Some(output) => Ok(output == content),
                        None => Err("no output"),
                    }
                },
            )
        };
        let three = StopCondition::max_steps(3);
        for (until, expected) in [
            (judge("draft"), Some("it is draft")),
            (judge("done"), None),
            (judge("done").not(), Some("not: it is done")),
            (
                judge("draft").and(three.clone()),
                Some("it is draft; 3 steps are done"),
            ),
            (judge("done").or(three), Some("3 steps are done")),
        ] {
            let stop = until.evaluate(&now).await;
            assert_eq!(
                stop.map(|stop| stop.reason).as_deref(),
                expected,
                "{until:?}"
            );
        }
        let silent = Snapshot::new(3, &spent);
        let stop = judge("draft").not().evaluate(&silent).await.unwrap();
        assert_eq!(stop.cause, StopCause::Failed);
        assert_eq!(stop.reason, "a predicate failed: no output");
        let panics = Snapshot {
            text: Some("panic"),
            ..silent
        };
        let stop = judge("draft").evaluate(&panics).await.unwrap();
        assert_eq!(stop.reason, "a predicate failed: it panicked: no output");
    }

    #[test]
    fn combinations_tell_all_reasons() {
        let spent = RunUsage::default();
        let now = Snapshot::new(3, &spent);
        let (two, three, four) = (
            StopCondition::max_steps(2),
            StopCondition::max_steps(3),
            StopCondition::max_steps(4),
        );
        let both = "2 steps are done; 3 steps are done";
        for (until, expected) in [
            (
                StopCondition::any([two.clone(), four.clone(), three.clone()]),
                Some(both),
            ),
            (StopCondition::all([two.clone(), three.clone()]), Some(both)),
            (StopCondition::all([two.clone(), four.clone()]), None),
            (
                StopCondition::any([four.clone(), StopCondition::never()]),
                None,
            ),
            (StopCondition::any([]), None),
            (StopCondition::all([]), None),
            (two.clone().not(), None),
            (four.clone().not(), Some("not: 4 steps are done")),
            (
                four.and(three.clone()).not(),
                Some("not: (4 steps are done and 3 steps are done)"),
            ),
            (
                two.or(three).not().not(),
                Some("not: not: (2 steps are done or 3 steps are done)"),
            ),
        ] {
            assert_eq!(told(&until, &now).as_deref(), expected, "{until:?}");
        }
    }

    #[test]
    fn what_fails_stops_the_loop_however_it_is_combined() {
        let spent = RunUsage::default();
        let now = Snapshot::new(0, &spent);
        let fails = StopCondition::new("fails", |_| Err("no network"));
        let panics = StopCondition::new("panics", |now| -> Result<bool, String> {
            panic!("at {}", now.steps)
        });
        for (until, expected) in [
            (fails.clone(), "a predicate failed: no network"),
            (fails.clone().not(), "a predicate failed: no network"),
            (
                fails.clone().and(StopCondition::never()),
                "a predicate failed: no network",
            ),
            (
                StopCondition::max_steps(0).or(fails),
                "a predicate failed: no network",
            ),
            (
                StopCondition::never().and(panics.clone()),
                "a predicate failed: it panicked: at 0",
            ),
            (panics.not(), "a predicate failed: it panicked: at 0"),
        ] {
            let stop = evaluate(&until, &now).unwrap();
            assert_eq!(
                (stop.reason.as_str(), stop.cause),
                (expected, StopCause::Failed)
            );
        }
    }
}
