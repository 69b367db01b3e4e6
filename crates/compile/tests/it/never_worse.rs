//! What our calls cost beside those of a host without us, session by session, on a simulated cache: against a host that sends everything and marks it
//! as well as we do where that fits its window, else against one that drops the oldest messages.

use std::collections::BTreeSet;

use contexture_catalogue::{CacheKind, Catalogue, Meter};
use contexture_compile::{
    CacheMarker, CacheRules, CacheSimulator, CacheState, CacheUsage, Clear, ClearPolicy,
    CompileInput, CompileRequest, Compiled, MarkerPolicy, Outline, PathItem, Plan, PreviewPolicy,
    Rates, Rewriting, Scratch, Target, TracedCall, compile, read_tool, simulate_calls,
    simulate_windowed_calls,
};
use contexture_ir::{Item, Part, Reasoning, TextPart};
use contexture_wire::{CacheTtl, Format};

use crate::fixtures::{Session, calls, counter_of, sessions};

const TARGETS: [(Format, &str); 4] = [
    (Format::Anthropic, "claude-sonnet-4-5"),
    (Format::OpenAiResponses, "gpt-5.6"),
    (Format::OpenAiChat, "gpt-4.1"),
    (Format::Gemini, "gemini-3.1-pro-preview"),
];

/// Twenty seconds between calls, and ten minutes, for which a host asks for the longer time.
const GAPS: [(u64, CacheTtl); 2] = [(20_000, CacheTtl::Usual), (600_000, CacheTtl::Long)];

/// How we compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As a host gets it that says nothing.
    Default,
    /// With previews, and the tool to read the rest with from the first of them on.
    Previews,
    /// Old outputs are cleared as soon as that pays.
    Early,
}

/// How, and in which window: the model's, or one that most sessions outgrow. In one of 6,000 the tool that previews
/// need is a tenth.
const CASES: [(Way, Option<u64>); 5] = [
    (Way::Default, None),
    (Way::Previews, None),
    (Way::Default, Some(6_000)),
    (Way::Previews, Some(12_000)),
    (Way::Early, Some(24_000)),
];

/// One session under two hosts, in pico-dollars.
struct Bill {
    name: String,
    /// Whether everything fits.
    fits: bool,
    ours: u128,
    theirs: u128,
    /// The same without marks of theirs.
    unmarked: u128,
    /// What writing the largest request anew costs beyond reading it.
    rewrite: u128,
    epochs: u64,
}

impl Bill {
    /// What we lose, in cache re-writes.
    fn loss(&self) -> f64 {
        self.ours.saturating_sub(self.theirs) as f64 / self.rewrite.max(1) as f64
    }
}

#[test]
fn cost_stays_below_plain_host_and_one_rewrite_per_session() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let all = sessions();
    let step = if soak { 1 } else { 25 };
    // Those with long outputs are the last.
    let (short, long) = all.split_at(200);
    let chosen: Vec<&Session> = short.iter().step_by(step).chain(long).collect();
    let (table, worse) = compare(&chosen, &TARGETS);
    println!("{table}");
    assert_eq!(worse, Vec::<String>::new());
}

/// The same sessions with signed thinking before each step, for a model that binds it. Thinking that is lost has to be thought again: it counts
/// at the price of output, once, for us and for a host that slides its window and has to leave it out just so.
#[test]
fn cost_stays_below_plain_host_with_lost_thinking_counted() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let all: Vec<Session> = sessions().into_iter().map(with_thinking).collect();
    let step = if soak { 4 } else { 40 };
    let (short, long) = all.split_at(200);
    let chosen: Vec<&Session> = short.iter().step_by(step).chain(long).collect();
    let target = (Format::Anthropic, "claude-fable-5-1");
    let (table, worse) = compare(&chosen, &[target]);
    println!("{table}");
    assert_eq!(worse, Vec::<String>::new());
}

/// Puts a thought before each step of the model.
fn with_thinking(session: Session) -> Session {
    let mut path: Vec<PathItem> = Vec::new();
    for item in session.path {
        let speaks = |one: &PathItem| one.item.is_model_output();
        if speaks(&item) && !path.last().is_some_and(speaks) {
            let text = "Let me see what this is about. ".repeat(1 + path.len() % 5 * 4);
            path.push(PathItem::new(Item::Reasoning(Reasoning {
                content: Some(vec![Part::ReasoningText(TextPart::new(text))]),
                signature: Some(format!("c2ln{:036}", path.len())),
                format: Some("anthropic-claude-v1".to_owned()),
                ..Reasoning::default()
            })));
        }
        path.push(item);
    }
    Session { path, ..session }
}

/// What the sessions cost, as a table, and what is worse than it may be.
fn compare(chosen: &[&Session], targets: &[(Format, &'static str)]) -> (String, Vec<String>) {
    let mut table = format!(
        "dollars for the input of {} sessions; theirs: everything, marked as ours, or the newest that fits",
        chosen.len()
    );
    table += &format!(
        "\n  {:<22} {:>7} {:<9} {:>7} {:>4} {:>9} {:>9} {:>9} {:>7} {:>7} {:>6}",
        "", "gap", "way", "limit", "fit", "unmarked", "theirs", "ours", "", "losers", "worst"
    );
    let mut worse = Vec::new();
    for (format, model) in targets.iter().copied() {
        let everything = |session: &&Session| passthrough(session, format, model);
        let whole: Vec<Vec<Sent>> = chosen.iter().map(everything).collect();
        let mut all = (0, 0);
        for (way, limit) in CASES {
            for (gap, ttl) in GAPS {
                let host = Host {
                    format,
                    model,
                    gap,
                    ttl,
                    limit,
                };
                let own = |session: &&Session| host.compiled(session, way);
                let ours: Vec<Vec<Sent>> = chosen.iter().map(own).collect();
                let bill = |at: usize| host.bill(chosen[at], &whole[at], &ours[at]);
                let bills: Vec<Bill> = (0..chosen.len()).filter_map(bill).collect();
                let row = row(model, gap, way, limit, &bills);
                table += &format!("\n{row}");
                worse.extend(self::worse(way, &bills, &row));
                all.0 += sum(&bills, |bill| bill.ours);
                all.1 += sum(&bills, |bill| bill.theirs);
            }
        }
        if all.0 >= all.1 {
            worse.push(format!("{model}: {} against {} in all", all.0, all.1));
        }
    }
    (table, worse)
}

/// What is not as it must be: in no case more than theirs in all, neither for the sessions that fit nor for the
/// others, and for none of them more than one re-write. Clearing early is a bet on the calls to come, whose stake alone
/// is bounded.
fn worse(way: Way, bills: &[Bill], row: &str) -> Vec<String> {
    let mut worse = Vec::new();
    let sides: &[bool] = match way {
        Way::Default | Way::Previews => &[true, false],
        Way::Early => &[],
    };
    for fits in sides {
        let own = || bills.iter().filter(|bill| bill.fits == *fits);
        let ours: u128 = own().map(|bill| bill.ours).sum();
        let theirs: u128 = own().map(|bill| bill.theirs).sum();
        if ours > theirs {
            worse.push(format!("{row}\nfits: {fits}: {ours} against {theirs}"));
        }
    }
    let losers = bills.iter().filter(|bill| bill.loss() > 1.0);
    worse.extend(losers.map(|bill| format!("{row}\n{}: {}", bill.name, bill.loss())));
    worse
}

fn sum(bills: &[Bill], cost: fn(&Bill) -> u128) -> u128 {
    bills.iter().map(cost).sum()
}

/// A line of the table, and those that lose most.
fn row(model: &str, gap: u64, way: Way, limit: Option<u64>, bills: &[Bill]) -> String {
    let sum = |cost| sum(bills, cost);
    let (theirs, ours) = (sum(|bill| bill.theirs), sum(|bill| bill.ours));
    let mut losers: Vec<&Bill> = bills
        .iter()
        .filter(|bill| bill.ours > bill.theirs)
        .collect();
    losers.sort_by(|a, b| b.loss().total_cmp(&a.loss()));
    let dollars = |cost: u128| cost as f64 / 1e12;
    let mut row = format!(
        "  {model:<22} {:>6}s {:<9} {:>7} {:>4} {:>9.4} {:>9.4} {:>9.4} {:>+6.1}% {:>7} {:>6.2}",
        gap / 1_000,
        format!("{way:?}"),
        limit.map_or("model's".to_owned(), |limit| limit.to_string()),
        bills.iter().filter(|bill| bill.fits).count(),
        dollars(sum(|bill| bill.unmarked)),
        dollars(theirs),
        dollars(ours),
        100.0 * (ours as f64 / theirs as f64 - 1.0),
        losers.len(),
        losers.first().map_or(0.0, |bill| bill.loss()),
    );
    for bill in losers.iter().take(3) {
        row += &format!(
            "\n      {}: {:.5} against {:.5}, {:.2} re-writes, {} epochs",
            bill.name,
            dollars(bill.ours),
            dollars(bill.theirs),
            bill.loss(),
            bill.epochs
        );
    }
    row
}

/// What one call sends.
#[derive(Clone)]
struct Sent {
    length: usize,
    outline: Outline,
    marks: Vec<CacheMarker>,
    epoch: u64,
    /// The thinking that is not in it, as indexes on the path.
    lost: Vec<usize>,
}

fn request(format: Format, model: &str, limit: Option<u64>) -> CompileRequest {
    let mut target = Target::new(format, model);
    if let Some(limit) = limit {
        target = target.window(limit + 500).reserve(500);
    }
    target.build_request(Catalogue::builtin()).unwrap()
}

/// Everything, as it is.
fn passthrough(session: &Session, format: Format, model: &str) -> Vec<Sent> {
    let mut request = request(format, model, Some(10_000_000));
    request.cache.marker_policy = None;
    request.history.clear = Clear::Never;
    run(session, request)
}

fn run(session: &Session, mut request: CompileRequest) -> Vec<Sent> {
    let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
    let mut sent = Vec::new();
    for length in calls(&session.path) {
        let input = CompileInput {
            path: (&session.path[..length]).into(),
            covers: &[],
            dropped_rules: &[],
            passes: &[],
            contributions: &session.system,
            plan: &plan,
            request: &request.clone(),
            counter: counter_of(request.dialect.format),
            cancel: None,
        };
        let Ok(mut compiled) = compile(&input, &mut scratch) else {
            continue;
        };
        let shortened = compiled.report.rewritten.iter();
        let mut shortened = shortened.filter(|one| one.rewriting == Rewriting::Previewed);
        if request.tools.is_empty() && shortened.next().is_some() {
            request.tools = vec![read_tool()];
            let request = &request;
            let again = compile(&CompileInput { request, ..input }, &mut scratch);
            let Ok(again) = again else { continue };
            compiled = again;
        }
        let outline = compiled.payload.outline();
        // Marks below the provider's minimum do nothing, and are not in the plan.
        let kept = compiled.plan.cached_prefixes.iter();
        let marks = kept
            .map(|kept| CacheMarker::existing(kept.segment, kept.ttl))
            .collect();
        sent.push(Sent {
            length,
            outline,
            marks,
            epoch: compiled.report.epoch.number,
            lost: lost_thinking(session, &compiled),
        });
        plan = compiled.plan;
    }
    sent
}

fn is_thinking(item: &PathItem) -> bool {
    matches!(&*item.item, Item::Reasoning(_))
}

fn lost_thinking(session: &Session, compiled: &Compiled) -> Vec<usize> {
    let omitted = compiled.report.omitted.iter();
    let all = omitted.flat_map(|span| span.first..=span.last);
    all.filter(|at| is_thinking(&session.path[*at])).collect()
}

/// How both are replayed.
struct Host<'a> {
    format: Format,
    model: &'a str,
    gap: u64,
    ttl: CacheTtl,
    limit: Option<u64>,
}

impl Host<'_> {
    /// As we compile it. The host tells for how long it marks, and whether that is over.
    fn compiled(&self, session: &Session, way: Way) -> Vec<Sent> {
        let mut request = request(self.format, self.model, self.limit);
        let cache = &mut request.cache;
        cache.marker_policy = cache.marker_policy.map(|_| self.marks());
        if cache.rules.ttl_ms(self.ttl) <= self.gap {
            cache.state = CacheState::Cold;
        }
        match way {
            Way::Default => {}
            Way::Previews => request.history.preview = Some(PreviewPolicy::default()),
            Way::Early => {
                request.history.clear = Clear::By(ClearPolicy {
                    trigger: 20,
                    low_water: 10,
                    ..ClearPolicy::default()
                });
            }
        }
        run(session, request)
    }

    const fn marks(&self) -> MarkerPolicy {
        MarkerPolicy {
            head: self.ttl,
            history: self.ttl,
        }
    }

    /// What it costs to think some of it again.
    fn thinking_cost(&self, session: &Session, lost: impl IntoIterator<Item = usize>) -> u128 {
        let spec = Catalogue::builtin().resolve(self.model).unwrap();
        let price = spec.prices.get(Meter::Output, 0).unwrap();
        let counter = counter_of(self.format);
        let tokens = lost.into_iter().map(|at| {
            let text = session.path[at].item.text();
            u128::from(counter.count(&text).count)
        });
        tokens.sum::<u128>() * u128::from(price.micro_dollars_per_million())
    }

    /// Nothing if we refused every call: then the newest words alone do not fit.
    fn bill(&self, session: &Session, whole: &[Sent], ours: &[Sent]) -> Option<Bill> {
        let spec = Catalogue::builtin().resolve(self.model).unwrap();
        let rules = CacheRules::for_model(spec, self.format);
        let rates = Rates::for_request(&spec.prices, rules.kind, 0).unwrap();
        let policy = self.marks();
        let theirs: Vec<&Sent> = whole
            .iter()
            .filter(|call| ours.iter().any(|one| one.length == call.length))
            .collect();
        let largest = theirs.iter().max_by_key(|call| call.outline.tokens())?;
        let window = request(self.format, self.model, self.limit);
        let limit = window.window - window.reserve;
        // Where counts are estimates both keep to the upper bound.
        let (guess, bound) = (largest.outline.tokens(), most(&largest.outline));
        let fits = bound <= limit;
        let limit = limit * guess / bound;
        let at = |at: usize| at as u64 * self.gap;
        let sent = theirs.iter().enumerate().map(|(n, call)| TracedCall {
            outline: call.outline.clone(),
            at_ms: at(n),
        });
        let bare = |used: &CacheUsage| match rules.kind {
            CacheKind::Explicit => CacheUsage {
                fresh: used.total_tokens(),
                ..CacheUsage::default()
            },
            _ => *used,
        };
        let used = if fits {
            simulate_calls(&rules, policy, sent)
        } else {
            simulate_windowed_calls(&rules, policy, limit, sent)
        };
        let mut trace = CacheSimulator::new(rules.clone());
        let timed = |mark: &CacheMarker| CacheMarker::existing(mark.segment, self.ttl);
        let own = ours.iter().enumerate().map(|(n, call)| {
            let marks: Vec<CacheMarker> = call.marks.iter().map(timed).collect();
            trace.record_call(&call.outline, &marks, at(n))
        });
        let own: CacheUsage = own.sum();
        let lost: BTreeSet<usize> = ours.iter().flat_map(|call| call.lost.clone()).collect();
        // Whoever slides a window edits what stands before all thinking so far.
        let slid = theirs.iter().filter(|call| call.outline.tokens() > limit);
        let slid = slid.map(|call| call.length).max().filter(|_| !fits);
        let theirs_lost = (0..slid.unwrap_or(0)).filter(|at| is_thinking(&session.path[*at]));
        let write = if self.ttl == CacheTtl::Long {
            rates.write_long
        } else {
            rates.write
        };
        Some(Bill {
            name: session.name.clone(),
            fits,
            ours: own.input_cost(&rates) + self.thinking_cost(session, lost),
            unmarked: used.iter().map(bare).sum::<CacheUsage>().input_cost(&rates),
            theirs: used.into_iter().sum::<CacheUsage>().input_cost(&rates)
                + self.thinking_cost(session, theirs_lost),
            rewrite: u128::from(guess.min(limit)) * u128::from(write.saturating_sub(rates.read)),
            epochs: ours.last()?.epoch,
        })
    }
}

fn most(outline: &Outline) -> u64 {
    outline.segments.iter().map(|one| one.tokens.high).sum()
}
