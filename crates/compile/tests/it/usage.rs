//! What providers billed for recorded requests lies within the bounds of our count.
//!
//! Left out are requests whose input is more than the request: those with the provider's own tools, which add what they
//! find, and those that continue what the provider has stored.

use contexture_catalogue::Catalogue;
use contexture_compile::{
    Band, BudgetCount, Calibration, CompileInput, Content, Contribution, PathItem, Plan, Scratch,
    Target, TokenBounds, Totals, compile,
};
use contexture_ir::{ToolDefinition, Transcript};
use contexture_testdata::Exchange;
use contexture_tokens::counter_for;
use contexture_wire::{Format, lift};

use crate::recorded::{billed, model_of};

/// Fields of requests that continue or change what the provider has stored.
const STORED: [&str; 4] = [
    "\"previous_response_id\"",
    "\"conversation\"",
    "\"mcp_servers\"",
    "\"context_management\"",
];

/// Recordings whose bill is not that of the recorded request, and why.
const NOT_BILLS: [(&str, &str); 2] = [
    (
        "test_yaml_document_url_input",
        "fewer tokens than the recorded text has in the model's own vocabulary: another text was sent",
    ),
    (
        "test_openai_responses_model_retry.yaml#0",
        "the recorded usage is zero",
    ),
];

/// Recordings outside the bounds, and what the provider added or left out.
const OUTSIDE: [(&str, &str); 1] = [(
    "groq-gpt-oss-explicit-effort-overrides-thinking",
    "the host adds the system message of gpt-oss, about 65 tokens",
)];

#[test]
fn what_was_billed_lies_within_the_bounds() {
    let (mut all, mut all_inside) = (0, 0);
    for format in Format::PROVIDERS {
        let (mut inside, mut outside) = (0, Vec::new());
        let mut narrow = 0;
        let mut widths = Vec::new();
        for exchange in contexture_testdata::exchanges(format.as_str()) {
            let Some((totals, billed)) = measure(format, &exchange) else {
                continue;
            };
            let name = format!("{}#{}", exchange.file, exchange.index);
            if (totals.low..=totals.tokens).contains(&billed) {
                inside += 1;
            } else {
                outside.push((name, totals.low, billed, totals.tokens));
            }
            widths.push(totals.tokens as f64 / billed.max(1) as f64);
            // Media that only the provider sees have wide bounds, and so have small requests with tools.
            narrow += usize::from(totals.tokens <= 2 * billed + 300);
        }
        widths.sort_by(f64::total_cmp);
        println!(
            "{format}: {inside} inside, {narrow} of them narrow, upper bound {:.2} of the bill in the median; outside {outside:?}",
            widths[widths.len() / 2]
        );
        all += inside + outside.len();
        all_inside += inside;
        for (name, low, billed, high) in &outside {
            assert!(
                OUTSIDE.iter().any(|(known, _)| name.contains(known)),
                "{format} {name}: billed {billed}, bounds {low} to {high}"
            );
        }
        // Few of Bedrock's recordings are of models whose vocabulary is known.
        let least = if format == Format::Bedrock { 15 } else { 35 };
        assert!(
            inside >= least,
            "{format}: only {inside} recordings measured"
        );
        // Bounds that hold for being wide would be worth nothing.
        assert!(3 * narrow >= 2 * inside, "{format}: {narrow} of {inside}");
    }
    println!("{all_inside} of {all} inside");
    assert!(1_000 * all_inside >= 995 * all, "{all_inside} of {all}");
}

/// Each request is held out until its range was narrowed by those before it.
#[test]
fn what_was_learned_narrows_the_ranges_of_what_comes_next() {
    let mut calibration = Calibration::default();
    let (mut held_out, mut before, mut after) = (0, 0.0, 0.0);
    let mut shares = 0.0;
    let mut outside = Vec::new();
    for format in Format::PROVIDERS {
        for exchange in contexture_testdata::exchanges(format.as_str()) {
            let Some((totals, billed)) = measure(format, &exchange) else {
                continue;
            };
            let counted = TokenBounds {
                low: totals.low,
                high: totals.tokens,
            };
            let inside = (totals.low..=totals.tokens).contains(&billed);
            let model = format!("{format}/{}", model_of(&exchange).unwrap());
            if let Some(narrowing) = calibration.calibrated_range(&model).filter(|_| inside) {
                let narrowed = narrowing.apply_to(counted);
                assert!(counted.low <= narrowed.low && narrowed.high <= counted.high);
                if narrowed != counted {
                    held_out += 1;
                    let width = |range: TokenBounds| (range.high - range.low) as f64;
                    before += width(counted);
                    after += width(narrowed);
                    shares += width(narrowed) / width(counted);
                    if !(narrowed.low..=narrowed.high).contains(&billed) {
                        outside.push((exchange.file.clone(), counted, narrowed, billed));
                    }
                }
            }
            calibration.learn_from_range(&model, counted, billed);
        }
    }
    let mean = shares / f64::from(held_out);
    println!(
        "{held_out} held out, {mean:.2} of the width on average, {after} of {before} tokens in all"
    );
    assert!(outside.is_empty(), "{outside:?}");
    assert!(held_out >= 25, "{held_out}");
    assert!(mean < 0.8, "{mean}");
}

/// How much of a window a provider counts as used when the first content is cut for want of room: then what is budgeted has just
/// reached the limit, so the share is that of the bill in what is budgeted for it.
#[test]
fn first_cut_for_want_of_room_is_near_the_limit() {
    for format in Format::PROVIDERS {
        let (mut before, mut after, mut over) = (Vec::new(), Vec::new(), 0);
        for exchange in contexture_testdata::exchanges(format.as_str()) {
            let Some((upper, billed)) = measure(format, &exchange) else {
                continue;
            };
            let Some((likely, _)) = measure_by(format, &exchange, BudgetCount::Likely) else {
                continue;
            };
            // Small requests never fill a window, and files that nobody sees are not counted but bounded.
            let is_text = upper.counted.high <= 3 * upper.counted.low;
            if billed < 300 || !is_text || !upper.unbounded.is_empty() {
                continue;
            }
            before.push(billed as f64 / upper.tokens as f64);
            after.push(billed as f64 / likely.tokens as f64);
            over += usize::from(billed > likely.tokens);
        }
        let median = |shares: &mut Vec<f64>| {
            shares.sort_by(f64::total_cmp);
            shares.get(shares.len() / 2).copied().unwrap_or(1.0)
        };
        let count = after.len();
        let (was, is) = (median(&mut before), median(&mut after));
        println!(
            "{format}: {count} requests, median share used {was:.3} by the upper bound, {is:.3} by the likely count; lowest {:.3}; {over} above",
            after.first().copied().unwrap_or(1.0)
        );
        assert!(is >= 0.85, "{format}: {is}");
        assert!(10 * over <= count + 9, "{format}: {over} of {count} above");
    }
}

/// Prints where each bill lies: `cargo nextest run -p contexture-compile survey --run-ignored all --no-capture`.
#[test]
#[ignore = "prints figures and asserts nothing"]
fn survey() {
    for format in Format::PROVIDERS {
        for exchange in contexture_testdata::exchanges(format.as_str()) {
            let Some((totals, billed)) = measure(format, &exchange) else {
                continue;
            };
            let place = (billed as f64 - totals.low as f64)
                / (totals.tokens as f64 - totals.low as f64).max(1.0);
            println!(
                "BILL\t{format}\t{}\t{}#{}\t{}\t{billed}\t{}\t{place:.2}\t{}\t{}\t{:?}",
                model_of(&exchange).unwrap(),
                exchange.file,
                exchange.index,
                totals.low,
                totals.tokens,
                totals.messages,
                totals.framing,
                totals.unbounded,
            );
        }
    }
}

#[test]
fn every_exception_is_one() {
    let names: Vec<String> = Format::PROVIDERS
        .into_iter()
        .flat_map(|format| {
            let exchanges = contexture_testdata::exchanges(format.as_str());
            exchanges.into_iter().filter_map(move |exchange| {
                let (totals, billed) = measure(format, &exchange)?;
                let inside = (totals.low..=totals.tokens).contains(&billed);
                (!inside).then(|| format!("{}#{}", exchange.file, exchange.index))
            })
        })
        .collect();
    for (known, why) in OUTSIDE {
        let still = names.iter().any(|name| name.contains(known));
        assert!(still, "{known} is inside the bounds now; it was not: {why}");
    }
}

/// What we count for a recorded request, and what was billed; `None` if they cannot be compared.
fn measure(format: Format, exchange: &Exchange) -> Option<(Totals, u64)> {
    measure_by(format, exchange, BudgetCount::Upper)
}

fn measure_by(format: Format, exchange: &Exchange, count: BudgetCount) -> Option<(Totals, u64)> {
    let request = exchange.request.get();
    let name = format!("{}#{}", exchange.file, exchange.index);
    let comparable = exchange.status == 200
        && !STORED.iter().any(|field| request.contains(field))
        && !NOT_BILLS.iter().any(|(known, _)| name.contains(known));
    let billed = billed(format, exchange)
        .next()
        .filter(|_| comparable)?
        .input;
    let transcript = lift(format, request).unwrap().transcript;
    let own = |tool: &ToolDefinition| matches!(tool, ToolDefinition::Provider(_));
    if transcript.tools.iter().any(own) {
        return None;
    }
    let model = model_of(exchange)?;
    let spec = Catalogue::builtin().resolve(&model).ok()?;
    let target = Target::new(format, model)
        .request_settings(&transcript)
        .count(count)
        .window(10_000_000)
        .reserve(1_000);
    let request = target.build_request(Catalogue::builtin()).unwrap();
    let path = PathItem::from_items(transcript.items.iter().cloned());
    let input = CompileInput {
        path: (&path).into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &instructions(&transcript),
        plan: &Plan::default(),
        request: &request,
        counter: counter_for(spec.encoding),
        cancel: None,
    };
    let compiled = compile(&input, &mut Scratch::new()).unwrap();
    Some((compiled.report.totals, billed))
}

fn instructions(transcript: &Transcript) -> Vec<Contribution> {
    let messages = transcript.instructions.clone();
    if messages.is_empty() {
        return Vec::new();
    }
    let content = Content::Instructions(messages);
    vec![Contribution::new("instructions", Band::System, content)]
}
