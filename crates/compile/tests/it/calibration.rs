//! What reports of usage teach, and what a compile makes of it.

use contexture_compile::{
    Calibration, CompileInput, CompileRequest, Compiled, CountedRequest, PathItem, Plan, Report,
    Scratch, TokenBounds, compile, load_call, store_call,
};
use contexture_ir::Item;
use contexture_wire::Format;
use proptest::prelude::*;

use crate::fixtures::{assistant, counter_of, request, user};

const fn range(low: u64, high: u64) -> TokenBounds {
    TokenBounds { low, high }
}

/// A calibration that has seen `count` requests billed at this place of their range, in per cent.
fn seen(model: &str, place: u64, count: u64) -> Calibration {
    let mut calibration = Calibration::default();
    for at in 1..=count {
        let width = at * 400;
        let counted = range(at * 1_000, at * 1_000 + width);
        calibration.learn_from_range(model, counted, counted.low + width * place / 100);
    }
    calibration
}

#[test]
fn little_evidence_narrows_nothing_and_more_narrows_more() {
    let width = |count| {
        let narrowing = seen("m", 40, count).calibrated_range("m")?;
        let narrowed = narrowing.apply_to(range(100_000, 200_000));
        assert!(
            (narrowed.low..=narrowed.high).contains(&140_000),
            "{narrowed:?}"
        );
        Some(narrowed.high - narrowed.low)
    };
    assert_eq!(width(5), None);
    let widths: Vec<u64> = [6, 12, 24, 64].map(|count| width(count).unwrap()).to_vec();
    assert!(widths.is_sorted_by(|a, b| a > b), "{widths:?}");
    assert!(widths[3] <= 10_000, "{widths:?}");
    assert_eq!(seen("m", 40, 64).calibrated_range("another"), None);
}

#[test]
fn reports_that_say_nothing_of_counting_teach_nothing() {
    let mut calibration = seen("m", 40, 32);
    let known = calibration.calibrated_range("m");
    assert!(known.is_some());
    // Usage of zero, and a range about a file that only the provider sees.
    calibration.learn_from_range("m", range(1_000, 1_400), 0);
    calibration.learn_from_range("m", range(600, 90_000), 80_000);
    assert_eq!(calibration.calibrated_range("m"), known);
    // Where many are outside, the bounds are wrong and nothing may be narrowed.
    for _ in 0..8 {
        calibration.learn_from_range("m", range(1_000, 1_400), 2_000);
    }
    assert_eq!(calibration.calibrated_range("m"), None);
    // Exact counts have nothing to learn, and nothing to lose.
    let mut exact = Calibration::default();
    for _ in 0..20 {
        exact.learn_from_range("m", range(500, 500), 500);
    }
    assert_eq!(exact, Calibration::default());
    let kept = seen("m", 40, 64).calibrated_range("m").unwrap();
    assert_eq!(kept.apply_to(range(500, 500)), range(500, 500));
    assert_eq!(kept.apply_to(range(600, 90_000)), range(600, 90_000));
}

#[test]
fn what_was_written_down_is_read_back_and_damage_does_no_harm() {
    let calibration = seen("anthropic/claude", 40, 9);
    let json = serde_json::to_string(&calibration).unwrap();
    assert_eq!(
        serde_json::from_str::<Calibration>(&json).unwrap(),
        calibration
    );
    assert_eq!(
        serde_json::from_str::<Calibration>("{}").unwrap(),
        Calibration::default()
    );
    let damaged = r#"{"models":{"m":[[60000,1],[9000,10],[65535,65535],[1,2],[1,2],[1,2],[1,2],[1,2],[1,2],null]}}"#;
    let damaged: Calibration = serde_json::from_str(damaged).unwrap();
    if let Some(narrowing) = damaged.calibrated_range("m") {
        let narrowed = narrowing.apply_to(range(1_000, 2_000));
        // A place beyond the range is what a refusal leaves; it widens a range by its width a few times at most.
        assert!(1_000 <= narrowed.low && narrowed.low <= narrowed.high && narrowed.high <= 8_000);
    }
}

/// A long talk, counted with bounds.
fn talk() -> Vec<PathItem> {
    let turns = (0..40).flat_map(|at| -> [Item; 2] {
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

fn compiled(path: &[PathItem], request: &CompileRequest) -> Compiled {
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &[],
        plan: &Plan::default(),
        request,
        counter: counter_of(Format::Anthropic),
        cancel: None,
    };
    compile(&input, &mut Scratch::new()).unwrap()
}

#[test]
fn a_compile_budgets_with_what_was_learned() {
    let path = talk();
    let roomy = request(Format::Anthropic, 100_000);
    let mut calibration = Calibration::default();
    let truth = |low: u64, high: u64| low + (high - low) * 45 / 100;
    for length in 3..20 {
        let report = compiled(&path[..2 * length + 1], &roomy).report;
        let reported = truth(report.totals.low, report.totals.tokens);
        calibration.learn_from_usage(&CountedRequest::from(&report), reported);
    }
    let plain = compiled(&path, &roomy);
    let narrow = compiled(&path, &roomy.clone().with_calibration(&calibration));
    assert_eq!(narrow.payload.to_json(), plain.payload.to_json());
    let (before, after) = (&plain.report.totals, &narrow.report.totals);
    assert_eq!(
        (before.counted.low, before.counted.high),
        (before.low, before.tokens)
    );
    assert_eq!(after.counted, before.counted);
    assert!(
        before.low < after.low && after.tokens < before.tokens,
        "{before:?} {after:?}"
    );
    let billed = truth(before.low, before.tokens);
    assert!(
        (after.low..=after.tokens).contains(&billed),
        "{billed}: {after:?}"
    );
    let sum: u64 = narrow.report.segments.iter().map(|one| one.tokens).sum();
    assert_eq!(sum, after.tokens);
    println!(
        "{} … {} became {} … {}",
        before.low, before.tokens, after.low, after.tokens
    );

    // Where the window is tight, more of the history fits.
    let tight = request(Format::Anthropic, before.tokens * 8 / 10);
    let cut = compiled(&path, &tight).report;
    let kept = compiled(&path, &tight.clone().with_calibration(&calibration)).report;
    let omitted = |report: &Report| -> usize { report.omitted.iter().map(|span| span.items).sum() };
    assert!(
        omitted(&kept) < omitted(&cut),
        "{} {}",
        omitted(&kept),
        omitted(&cut)
    );

    // A stored call is budgeted as it was.
    let calibrated = tight.with_calibration(&calibration);
    let stored = store_call(&calibrated, &[]).unwrap();
    let (again, _) = load_call(&stored, &|_| None).unwrap();
    assert_eq!(compiled(&path, &again).report, kept);

    // Learning goes on from narrowed ranges, as if they had not been narrowed.
    let mut further = calibration.clone();
    for _ in 0..64 {
        further.learn_from_usage(&CountedRequest::from(&narrow.report), billed);
    }
    let again = compiled(&path, &roomy.clone().with_calibration(&further))
        .report
        .totals;
    assert!(
        (again.low..=again.tokens).contains(&billed),
        "{billed}: {again:?}"
    );
    // A report beyond the narrowed range, within the counted one, widens it again.
    let most = before.tokens - (before.tokens - before.low) / 10;
    further.learn_from_usage(&CountedRequest::from(&narrow.report), most);
    let wider = compiled(&path, &roomy.clone().with_calibration(&further))
        .report
        .totals;
    assert!(
        (wider.low..=wider.tokens).contains(&most),
        "{most}: {wider:?}"
    );
}

proptest! {
    #[test]
    fn a_narrowed_range_holds_what_it_was_learned_from(
        places in prop::collection::vec((0_u64..=100, 100_u64..100_000), 6..90),
    ) {
        let mut calibration = Calibration::default();
        let seen: Vec<(TokenBounds, u64)> = places
            .iter()
            .map(|(place, low)| {
                let counted = range(*low, low + low / 2);
                (counted, counted.low + (counted.high - counted.low) * place / 100)
            })
            .collect();
        for (counted, reported) in &seen {
            calibration.learn_from_range("m", *counted, *reported);
        }
        if let Some(narrowing) = calibration.calibrated_range("m") {
            for (counted, reported) in seen.iter().rev().take(64) {
                let narrowed = narrowing.apply_to(*counted);
                prop_assert!(counted.low <= narrowed.low && narrowed.high <= counted.high);
                prop_assert!(narrowed.low <= *reported && *reported <= narrowed.high);
            }
        }
    }
}
