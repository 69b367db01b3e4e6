//! The count that a budget goes by: how much of the window is used before anything is cut, and what follows a refusal.

use contexture_compile::{
    BudgetCount, Calibration, CompileInput, CompileRequest, Compiled, CountedRequest, PathItem,
    Plan, Report, RetryBudget, Scratch, TokenBounds, compile, load_call, store_call,
};
use contexture_ir::Item;
use contexture_wire::{Format, TooLong};

use crate::fixtures::{assistant, counter_of, request, user};

/// A talk of `rounds` questions and answers.
fn talk(rounds: usize) -> Vec<PathItem> {
    let turns = (0..rounds).flat_map(|at| -> [Item; 2] {
        [
            user(&format!(
                "Question {at}: where does the bell of the north tower hang, and who rings it?"
            )),
            assistant(&format!(
                "Answer {at}: under the roof, on a beam of oak; the sexton rings it at noon."
            )),
        ]
    });
    let items: Vec<Item> = turns.chain([user("And the south tower?")]).collect();
    PathItem::from_items(items)
}

fn compiled(path: &[PathItem], request: &CompileRequest, plan: &Plan) -> Compiled {
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &[],
        plan,
        request,
        counter: counter_of(Format::Anthropic),
        cancel: None,
    };
    compile(&input, &mut Scratch::new()).unwrap()
}

fn likely(limit: u64) -> CompileRequest {
    CompileRequest {
        count: BudgetCount::Likely,
        ..request(Format::Anthropic, limit)
    }
}

fn omitted(report: &Report) -> usize {
    report.omitted.iter().map(|span| span.items).sum()
}

#[test]
fn likely_count_keeps_more_and_says_what_is_at_stake() {
    let path = talk(60);
    let roomy = compiled(&path, &likely(100_000), &Plan::default()).report;
    // All of it fits by the likely count, and not by the upper bound.
    let window = roomy.totals.tokens;
    let upper = compiled(&path, &request(Format::Anthropic, window), &Plan::default()).report;
    let filled = compiled(&path, &likely(window), &Plan::default()).report;
    assert!(omitted(&filled) < omitted(&upper));
    for report in [&upper, &filled] {
        let sum: u64 = report.segments.iter().map(|segment| segment.tokens).sum();
        assert_eq!(sum, report.totals.tokens);
        assert!(report.totals.tokens <= report.target.limit);
        assert_eq!(
            report.totals.uncertain,
            report.totals.tokens - report.totals.low
        );
    }
    assert_eq!(
        (upper.totals.count, filled.totals.count),
        ("upper", "likely")
    );
    assert_eq!(upper.totals.upper, upper.totals.tokens);
    assert_eq!(upper.totals.refusal_percent, 0.0);
    // What was counted is the same whatever the budget goes by: it is what calibration learns from.
    assert_eq!(filled.totals.upper, filled.totals.counted.high);
    let is_over = filled.totals.upper > filled.target.limit;
    assert!(is_over && filled.totals.refusal_percent > 0.0, "{filled:?}");
}

#[test]
fn stored_call_keeps_its_count() {
    let path = talk(60);
    let request = likely(1_500);
    let stored = store_call(&request, &[]).unwrap();
    let (again, _) = load_call(&stored, &|_| None).unwrap();
    assert_eq!(again.count, BudgetCount::Likely);
    let [first, second] = [&request, &again].map(|one| compiled(&path, one, &Plan::default()));
    assert_eq!(first.payload.to_json(), second.payload.to_json());
    assert_eq!(first.report, second.report);
}

#[test]
fn refusal_is_learned_and_the_next_call_fits() {
    // A provider that counts nine tenths of the way from our low to our high bound.
    let truth = |report: &Report| {
        let counted = report.totals.counted;
        counted.low + (counted.high - counted.low) * 9 / 10
    };
    let mut calibration = Calibration::default();
    let request = likely(4_000);
    // The longest history that nothing is cut of: a cut would go far below the limit.
    let whole = |rounds: &usize| {
        let first = compiled(&talk(*rounds), &request, &Plan::default());
        omitted(&first.report) == 0
    };
    let rounds = (1..200).take_while(whole).last().unwrap();
    let path = talk(rounds);
    let first = compiled(&path, &request, &Plan::default());
    let tokens = truth(&first.report);
    assert!(tokens > 4_000, "{tokens}: it has to be refused");
    let refused = TooLong {
        tokens: Some(tokens),
        limit: Some(4_000),
    };
    calibration.learn_from_refusal(&CountedRequest::from(&first.report), refused);
    let totals = &first.report.totals;
    let sent = TokenBounds::between(totals.low, totals.upper);
    let budget = RetryBudget::after_refusal(&request, sent, refused).unwrap();
    let upper = CompileRequest {
        count: BudgetCount::Upper,
        ..request.clone()
    };
    // Nothing is tighter than the upper bound, unless the provider says so.
    let unknown = TooLong::default();
    assert_eq!(RetryBudget::after_refusal(&upper, sent, unknown), None);
    assert_ne!(format!("{budget:?}"), "");
    let second = compiled(
        &path,
        &upper.with_calibration(&calibration),
        &Plan::default(),
    );
    assert!(truth(&second.report) <= 4_000);
    // The next call of the same kind is filled by what was learned, and is not refused.
    let next = compiled(
        &talk(rounds + 1),
        &request.with_calibration(&calibration),
        &second.plan,
    );
    assert!(truth(&next.report) <= 4_000, "{:?}", next.report.totals);
    assert!(next.report.totals.count == "likely");
}
