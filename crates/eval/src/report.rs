//! The figures of an evaluation: run by run, task by task, and in sum, as text and as JSON.
//!
//! Not here: how they come about.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use contexture::catalogue::Money;
use serde::Serialize;

use crate::served::CallFigures;

/// One of the two ways in which each task is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// Every request goes to the provider as the agent sent it.
    Plain,
    /// The policy under test may change requests.
    Policy,
}

impl Arm {
    /// Both, in the order in which they are played.
    pub const BOTH: [Self; 2] = [Self::Plain, Self::Policy];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Policy => "policy",
        }
    }
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Verdict {
    /// It was played to its end and judged: `done` of so many tasks, or the sum of their rewards.
    Judged {
        /// Tasks that were done, or the sum of rewards between 0 and 1.
        done: f64,
        /// Tasks that were judged.
        of: u32,
        /// What was not as the task wants it, one line each.
        faults: Vec<String>,
    },
    /// The provider failed, which says nothing about the agent.
    ProviderFailed {
        /// What it said.
        why: String,
    },
    /// The budget was used up while it was played.
    OutOfBudget,
    /// The person stopped it.
    Interrupted,
}

/// A task that was played once, in one of the two ways.
#[derive(Clone, Debug, Serialize)]
pub struct PlayedRun {
    /// Name of the task.
    pub task: String,
    /// Whether it was played under the policy.
    pub arm: Arm,
    /// Which repetition it is, from 1.
    pub repetition: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// What its calls used and cost, by the server's record.
    #[serde(flatten)]
    pub figures: CallFigures,
    /// Seconds from its first call to its end.
    pub seconds: f64,
}

/// All runs of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluationReport {
    /// Model that was called.
    pub model: String,
    /// The policy under test, as TOML.
    pub policy: String,
    /// The runs in the order in which they were played.
    pub runs: Vec<PlayedRun>,
    /// Why not all runs were played; `None` if they were.
    pub stopped: Option<String>,
}

/// Several runs of one way, summed up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct RunSums {
    done: f64,
    of: u32,
    #[serde(flatten)]
    figures: CallFigures,
    seconds: f64,
}

impl RunSums {
    fn add(&mut self, run: &PlayedRun) {
        if let Verdict::Judged { done, of, .. } = run.verdict {
            self.done += done;
            self.of += of;
        }
        self.figures.add(&run.figures);
        self.seconds += run.seconds;
    }
}

/// Columns of the table: heading, and whether it holds figures, which stand to the right.
const COLUMNS: [(&str, Align); 9] = [
    ("task", Align::Left),
    ("arm", Align::Left),
    ("done", Align::Right),
    ("dollars", Align::Right),
    ("calls", Align::Right),
    ("input", Align::Right),
    ("cached", Align::Right),
    ("largest", Align::Right),
    ("seconds", Align::Right),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl EvaluationReport {
    /// Returns what all runs cost together, as far as prices are known.
    #[must_use]
    pub fn spent(&self) -> Money {
        let mut sum = CallFigures::default();
        self.runs.iter().for_each(|run| sum.add(&run.figures));
        sum.dollars
    }

    /// Returns whether any task was judged in both ways.
    #[must_use]
    pub fn has_comparison(&self) -> bool {
        self.compared_sums().is_some()
    }

    /// Returns the report as one JSON document: all runs, and `sum` over the tasks that were judged in both ways.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct ReportDocument<'a> {
            #[serde(flatten)]
            report: &'a EvaluationReport,
            spent_dollars: Money,
            sum: Option<BTreeMap<&'static str, RunSums>>,
        }
        let sum = self.compared_sums();
        let document = ReportDocument {
            report: self,
            spent_dollars: self.spent(),
            sum: sum.map(|(plain, policy)| BTreeMap::from([("plain", plain), ("policy", policy)])),
        };
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }

    /// Returns the report as text: a table, what the policy changed, what failed and why, and what was not played.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{} with and without this policy:\n", self.model);
        for line in self.policy.lines() {
            let _ = writeln!(text, "  {line}");
        }
        text.push('\n');
        write_table(&mut text, &self.table_rows());
        if let Some((plain, policy)) = self.compared_sums() {
            write_comparison(&mut text, &plain, &policy);
        }
        self.write_reasons(&mut text);
        if let Some(stopped) = &self.stopped {
            let _ = writeln!(text, "\nnot all was played: {stopped}");
        }
        text
    }

    fn table_rows(&self) -> Vec<[String; 9]> {
        let mut sums: Vec<((&str, Arm), RunSums)> = Vec::new();
        for run in &self.runs {
            let key = (run.task.as_str(), run.arm);
            // Few tasks, so that going through them costs nothing.
            match sums.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sum)) => sum.add(run),
                None => {
                    let mut sum = RunSums::default();
                    sum.add(run);
                    sums.push((key, sum));
                }
            }
        }
        let mut rows: Vec<[String; 9]> = sums
            .iter()
            .map(|((task, arm), sum)| table_row(task, *arm, sum))
            .collect();
        if let Some((plain, policy)) = self.compared_sums() {
            rows.push(table_row("in sum", Arm::Plain, &plain));
            rows.push(table_row("in sum", Arm::Policy, &policy));
        }
        rows
    }

    /// Sums over what was judged in both ways: otherwise a run that was cut off would count as one that cost little.
    fn compared_sums(&self) -> Option<(RunSums, RunSums)> {
        let judged = |arm: Arm| -> BTreeMap<(&str, u32), &PlayedRun> {
            let runs = self.runs.iter().filter(|run| run.arm == arm);
            runs.filter(|run| matches!(run.verdict, Verdict::Judged { .. }))
                .map(|run| ((run.task.as_str(), run.repetition), run))
                .collect()
        };
        let (plain, policy) = (judged(Arm::Plain), judged(Arm::Policy));
        let mut sums = (RunSums::default(), RunSums::default());
        let mut is_any = false;
        for (key, run) in &plain {
            if let Some(other) = policy.get(key) {
                is_any = true;
                sums.0.add(run);
                sums.1.add(other);
            }
        }
        is_any.then_some(sums)
    }

    /// Says of each run that was not done why, so that failures of the provider are never taken for the agent's.
    fn write_reasons(&self, text: &mut String) {
        for run in &self.runs {
            let (word, reasons) = match &run.verdict {
                Verdict::Judged { faults, .. } if faults.is_empty() => continue,
                Verdict::Judged { faults, .. } => ("not done", faults.clone()),
                Verdict::ProviderFailed { why } => ("the provider failed", vec![why.clone()]),
                Verdict::OutOfBudget => ("the budget was used up", Vec::new()),
                Verdict::Interrupted => ("interrupted", Vec::new()),
            };
            let arm = run.arm.as_str();
            let _ = writeln!(text, "\n{} ({arm}, {}): {word}", run.task, run.repetition);
            for reason in reasons {
                let _ = writeln!(text, "  {reason}");
            }
        }
    }
}

fn table_row(task: &str, arm: Arm, sum: &RunSums) -> [String; 9] {
    let figures = &sum.figures;
    let dollars = match figures.unpriced_calls {
        0 => figures.dollars.to_rounded_string(),
        _ => "unknown".to_owned(),
    };
    [
        task.to_owned(),
        arm.as_str().to_owned(),
        show_done(sum),
        dollars,
        figures.calls.to_string(),
        group_thousands(figures.input_tokens),
        group_thousands(figures.cached_tokens),
        group_thousands(figures.largest_request),
        format!("{:.1}", sum.seconds),
    ]
}

fn show_done(sum: &RunSums) -> String {
    match sum.of {
        0 => "-".to_owned(),
        // Rewards may be parts of one.
        of if sum.done.fract() > 0.0 => format!("{:.2} of {of}", sum.done),
        of => format!("{:.0} of {of}", sum.done),
    }
}

fn write_table(text: &mut String, rows: &[[String; 9]]) {
    let headings = COLUMNS.map(|(heading, _)| heading.to_owned());
    let lines: Vec<&[String; 9]> = std::iter::once(&headings).chain(rows).collect();
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|at| {
            lines
                .iter()
                .filter_map(|line| line.get(at))
                .map(String::len)
                .max()
                .unwrap_or(0)
        })
        .collect();
    for line in lines {
        let mut shown = String::new();
        for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(COLUMNS) {
            let _ = match align {
                Align::Left => write!(shown, "{cell:<width$}  "),
                Align::Right => write!(shown, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(text, "  {}", shown.trim_end());
    }
}

fn write_comparison(text: &mut String, plain: &RunSums, policy: &RunSums) {
    let is_priced = plain.figures.unpriced_calls + policy.figures.unpriced_calls == 0;
    let pico = |sum: &RunSums| sum.figures.dollars.pico_dollars();
    let dollars = match is_priced {
        true => show_change(pico(plain), pico(policy)),
        false => "unknown".to_owned(),
    };
    let _ = writeln!(
        text,
        "\n  under the policy: done {} against {}, dollars {dollars}, input {}, calls {}",
        show_done(policy),
        show_done(plain),
        show_change(
            plain.figures.input_tokens.into(),
            policy.figures.input_tokens.into()
        ),
        show_change(plain.figures.calls.into(), policy.figures.calls.into()),
    );
    let _ = writeln!(
        text,
        "  {} of {} calls were changed; {} more were made by the server itself",
        policy.figures.rewritten_calls, policy.figures.calls, policy.figures.own_calls
    );
    // A model that is asked twice may answer differently.
    if plain.of.max(policy.of) < 30 {
        text.push_str("  few runs: a difference of one or two tasks may be chance (--repeat)\n");
    }
}

/// Shows by how many per cent a figure changed.
fn show_change(before: u128, after: u128) -> String {
    if before == 0 {
        return "unknown".to_owned();
    }
    let change = (after as f64 / before as f64 - 1.0) * 100.0;
    format!("{change:+.1} %")
}

fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
