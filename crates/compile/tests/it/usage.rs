//! What providers billed for recorded requests lies within the bounds of our count.
//!
//! Left out are requests whose input is more than the request: those with the provider's own tools, which add what they
//! find, and those that continue what the provider has stored.

use contexture_catalogue::Catalogue;
use contexture_compile::{
    Band, Calibration, CompileInput, Content, Contribution, PathItem, Plan, Scratch, Target,
    TokenBounds, Totals, compile,
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

/// Recordings outside the bounds, and what the provider added or left out.
const OUTSIDE: [(&str, &str); 7] = [
    (
        "test_yaml_document_url_input",
        "fewer tokens than the recorded text has in the model's own vocabulary: another text was sent",
    ),
    (
        "groq-gpt-oss-explicit-effort-overrides-thinking",
        "the host adds the system message of gpt-oss, about 65 tokens",
    ),
    (
        "test_openai_responses_model_retry.yaml#0",
        "the recorded usage is zero",
    ),
    (
        "test_supported_model_calls_additional_tool",
        "tools within the input, an item of its own kind",
    ),
    (
        "test_anthropic_task_budget_adds_output_config_and_beta",
        "a beta option that the provider explains to the model",
    ),
    (
        "test_bedrock_single_tool_choice_preserves_cache[anthropic]",
        "one sentence in capitals, repeated: a tenth more tokens than the estimate's upper bound",
    ),
    (
        "test_bedrock_cache_point_adds_cache_control[claude-sonnet-4-5]",
        "one sentence in capitals, repeated: a tenth more tokens than the estimate's upper bound",
    ),
];

#[test]
fn what_was_billed_lies_within_the_bounds() {
    for format in Format::PROVIDERS {
        let (mut inside, mut outside) = (0, Vec::new());
        let mut narrow = 0;
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
            // Media that only the provider sees have wide bounds, and so have small requests with tools.
            narrow += usize::from(totals.tokens <= 2 * billed + 300);
        }
        println!("{format}: {inside} inside, {narrow} of them narrow; outside {outside:?}");
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
    let request = exchange.request.get();
    let comparable = exchange.status == 200 && !STORED.iter().any(|field| request.contains(field));
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
        .tools(transcript.tools.clone())
        .options(transcript.options.clone())
        .window(10_000_000)
        .reserve(1_000);
    let request = target.build_request(Catalogue::builtin()).unwrap();
    let input = CompileInput {
        path: &PathItem::from_items(transcript.items.iter().cloned()),
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
