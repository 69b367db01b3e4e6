//! `contexture calls` and `contexture usage`: what was asked of providers, and what it used and cost.

mod show_call;

use clap::Args;
use contexture::Engine;
use contexture::catalogue::Money;
use contexture::ir::{CallId, ConversationId, Owner};
use contexture::store::{
    CallFilter, CallGroup, CallGrouping, CallOutcome, CallRecord, CallSum, Calls, ListCalls,
    SumCalls,
};
use contexture_api::operations::CallPart;
use contexture_api::{CallDocument, CallsDocument, UsageDocument, format_timestamp, parse_time};

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{count_with_noun, group_thousands};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::Column;
use crate::output::write;

/// What is said where there are none.
const NO_CALLS: &str = "no calls; `serve`, `run` and `chat` record those that they make\n";

/// The options that choose among calls: with an id there is nothing to choose.
const FILTERS: [&str; 8] = [
    "since",
    "conversation",
    "upstream",
    "model",
    "key",
    "policy",
    "outcome",
    "limit",
];

/// Which calls are meant.
#[derive(Debug, Args)]
struct Filter {
    /// Only those since a day (2026-11-20), a time (2026-11-20T12:00:00Z), or of the last so long: 12h, 7d, 8w
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<i64>,
    /// Only those of this conversation
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<ConversationId>,
    /// Only those to this upstream
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Only those of this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only those of the key with this name
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only those under this policy
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Only those that ended so: completed, incomplete, refused, unreachable, blocked, forwarded
    #[arg(long, value_name = "OUTCOME", value_parser = parse_outcome)]
    outcome: Option<CallOutcome>,
}

/// List the calls to providers, newest first, or show one
///
/// Each exchange with a provider is one call, whether a server passed it on or a run made it; failures and calls of no model are
/// included. Calls are kept for 90 days, if the
/// server's configuration does not say otherwise; `contexture usage` sums up all there ever were. With an id it shows one call,
/// and what its request was made of, as it was stored when the call was made; with one of the options below the request, the report or
/// the answer instead, in JSON. A request is made again of what the conversation has: standard error says if it is not what was sent, byte
/// for byte.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture calls
  contexture calls --conversation support-42
  contexture calls req_019aa2f0b1c27d3e8f40516273849506
  contexture calls req_019aa2f0b1c27d3e8f40516273849506 --as-sent > sent.json
  contexture calls --outcome refused --since 24h
  contexture calls -n 1000 --json | jq '.calls[].dollars'")]
pub(crate) struct Arguments {
    /// Only this call: its id, as in the header x-contexture-request
    #[arg(value_name = "CALL", value_parser = parse_call_id, conflicts_with_all = FILTERS)]
    call: Option<CallId>,
    #[command(flatten)]
    part: PartArguments,
    #[command(flatten)]
    filter: Filter,
    /// At most so many
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "50")]
    limit: usize,
}

/// Which part of a call is written, in the place of its figures.
#[derive(Debug, Args)]
#[group(id = "part", multiple = false, requires = "call")]
struct PartArguments {
    /// Write the request as the provider got it
    #[arg(long)]
    as_sent: bool,
    /// Write the request as its client sent it; byte for byte if the server keeps `bodies`
    #[arg(long)]
    as_came: bool,
    /// Write the report on the request, if it was compiled
    #[arg(long)]
    report: bool,
    /// Write the answer's items
    #[arg(long)]
    answer: bool,
}

impl PartArguments {
    fn part(&self) -> Option<CallPart> {
        let flags = [self.as_sent, self.as_came, self.report, self.answer];
        let mut parts = CallPart::ALL.into_iter().zip(flags);
        parts.find_map(|(part, is_wanted)| is_wanted.then_some(part))
    }
}

/// Sum up what calls to providers used and cost
///
/// What policies saved is the difference between the input as it came and as it was sent, by prediction; it is negative where
/// they cost more.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture usage
  contexture usage --by model,day --since 30d
  contexture usage --by conversation | head
  contexture usage --json | jq .total.dollars")]
pub(crate) struct UsageArguments {
    #[command(flatten)]
    filter: Filter,
    /// What to group by: day, upstream, model, key, policy, conversation, outcome; owner: the calls of all owners
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = parse_grouping, default_value = "day")]
    by: Vec<UsageGrouping>,
}

/// What a sum is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageGrouping {
    /// By the owners of the database, each summed up for itself.
    Owner,
    /// By what the record of calls has of one owner's.
    By(CallGrouping),
}

/// The word for a sum of all owners.
const BY_OWNER: &str = "owner";

fn parse_outcome(word: &str) -> Result<CallOutcome, String> {
    let words = || CallOutcome::ALL.map(CallOutcome::as_str).join(", ");
    CallOutcome::from_word(word).ok_or_else(|| format!("expected one of {}", words()))
}

fn parse_call_id(text: &str) -> Result<CallId, String> {
    let id = text.strip_prefix("req_").unwrap_or(text);
    id.parse()
        .map_err(|_| "expected an id such as req_019aa2f0b1c27d3e8f40516273849506".to_owned())
}

fn parse_since(text: &str) -> Result<i64, String> {
    parse_time(text, now_ms())
}

fn parse_grouping(word: &str) -> Result<UsageGrouping, String> {
    if word == BY_OWNER {
        return Ok(UsageGrouping::Owner);
    }
    let words = || CallGrouping::ALL.map(CallGrouping::as_str).join(", ");
    CallGrouping::from_word(word)
        .map(UsageGrouping::By)
        .ok_or_else(|| format!("expected some of {}, {BY_OWNER}", words()))
}

impl Filter {
    fn to_filter(&self) -> CallFilter {
        CallFilter {
            since_ms: self.since,
            until_ms: None,
            conversation: self.conversation.clone(),
            upstream: self.upstream.clone(),
            model: self.model.clone(),
            key: self.key.clone(),
            policy: self.policy.clone(),
            outcome: self.outcome,
        }
    }
}

/// The record of calls.
///
/// # Errors
/// This kind of database keeps none.
fn require_calls(engine: &Engine) -> Outcome<&dyn Calls> {
    let none = || {
        Failure::new(
            Exit::Refused,
            "no_calls",
            "this database keeps no record of calls",
        )
    };
    engine.store().calls().ok_or_else(none)
}

/// Runs `contexture calls`.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(globals)?;
    if let Some(id) = arguments.call {
        require_calls(&engine)?;
        return match arguments.part.part() {
            Some(part) => show_call::write_part(&engine, &owner, id, part, globals).await,
            None => show_call::show_call(&engine, &owner, id, globals).await,
        };
    }
    let (found, more) = list_up_to_limit(require_calls(&engine)?, &owner, arguments).await?;
    if globals.json {
        write::print_json(&CallsDocument {
            calls: found.iter().map(CallDocument::from).collect(),
            // The command goes through all pages itself; there is no cursor to hand back.
            next: None,
            total: None,
        })?;
        return Ok(Exit::Done);
    }
    write::print_table(&CALL_COLUMNS, &call_rows(&found))?;
    if !globals.quiet && found.is_empty() {
        write::print_note(NO_CALLS);
    } else if !globals.quiet && more {
        let shown = count_with_noun(found.len() as u64, "call");
        write::print_note(&format!("{shown}, and there are more: -n NUMBER\n"));
    }
    Ok(Exit::Done)
}

/// Calls page by page, and whether there are more than the limit.
async fn list_up_to_limit(
    calls: &dyn Calls,
    owner: &Owner,
    arguments: &Arguments,
) -> Outcome<(Vec<CallRecord>, bool)> {
    let mut list = ListCalls {
        filter: arguments.filter.to_filter(),
        ..ListCalls::default()
    };
    let mut found: Vec<CallRecord> = Vec::new();
    loop {
        let left = arguments.limit.saturating_sub(found.len());
        list.limit = Some(left.clamp(1, 500));
        let page = calls.list_calls(owner, list.clone()).await;
        let page = page.map_err(contexture::EngineError::from)?;
        found.extend(page.calls.into_iter().take(left));
        match page.next {
            Some(next) if found.len() < arguments.limit => list.after = Some(next),
            next => return Ok((found, next.is_some())),
        }
    }
}

fn show_money(pico: u128) -> String {
    Money::from_pico_dollars(pico).to_rounded_string()
}

/// What stands in the place of an amount of models whose price is not known.
const UNKNOWN: &str = "unknown";

/// How the list is laid out.
const CALL_COLUMNS: [Column; 10] = [
    Column::figure("when"),
    Column::words("outcome", 10),
    Column::words("model", 10),
    Column::figure("cost"),
    Column::figure("input"),
    Column::figure("output"),
    Column::figure("time"),
    Column::figure("status"),
    Column::figure("cached"),
    Column::words("conversation", 10),
];

fn call_rows(found: &[CallRecord]) -> Vec<Vec<String>> {
    let now = now_ms();
    let row = |call: &CallRecord| {
        let details = &call.details;
        let tokens = |number: Option<u64>| number.map(group_thousands).unwrap_or_default();
        let model = match call.names.model.as_str() {
            "" => format!("({})", call.names.upstream),
            model => model.to_owned(),
        };
        let outcome = match &details.refusal {
            Some(why) => format!("{}: {}", call.outcome.as_str(), why.replace('_', " ")),
            None => call.outcome.as_str().to_owned(),
        };
        let conversation = call.conversation.as_ref();
        vec![
            relative_time(call.id.time_ms(), now),
            outcome,
            model,
            details
                .pico_dollars
                .map_or_else(String::new, |pico| show_money(pico.into())),
            tokens(details.tokens.map(|tokens| tokens.input)),
            tokens(details.tokens.map(|tokens| tokens.output)),
            match details.duration_ms {
                0 => String::new(),
                duration => format!("{} ms", group_thousands(duration)),
            },
            details
                .status
                .map_or_else(String::new, |status| status.to_string()),
            tokens(details.tokens.map(|tokens| tokens.cache_read)),
            conversation.map_or_else(String::new, ToString::to_string),
        ]
    };
    found.iter().map(row).collect()
}

/// Runs `contexture usage`.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn run_usage(arguments: &UsageArguments, globals: &Globals) -> Outcome {
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(globals)?;
    let filter = arguments.filter.to_filter().in_whole_hours();
    let groupings = arguments.by.iter().filter_map(|by| match by {
        UsageGrouping::Owner => None,
        UsageGrouping::By(by) => Some(*by),
    });
    let by: Vec<CallGrouping> = groupings.collect();
    let sum = SumCalls {
        filter,
        by: by.clone(),
    };
    let calls = require_calls(&engine)?;
    let all_owners = arguments.by.contains(&UsageGrouping::Owner);
    let sums: Vec<(Owner, Vec<(CallGroup, CallSum)>)> = match all_owners {
        true => sum_owners(calls, &sum).await?,
        false => vec![(owner.clone(), sum_owner(calls, &owner, &sum).await?)],
    };
    let is_empty = sums.iter().all(|(_, sums)| sums.is_empty());
    if globals.json {
        let own = sums.first().map_or(&[][..], |(_, sums)| sums);
        write::print_json(&match all_owners {
            true => UsageDocument::from_owners(&by, &sums),
            false => UsageDocument::from_sums(&by, own),
        })?;
    } else if !is_empty {
        let (columns, rows) = usage_table(all_owners, &by, &sums);
        write::print_table(&columns, &rows)?;
    } else if !globals.quiet {
        write::print_note(NO_CALLS);
    }
    Ok(Exit::Done)
}

async fn sum_owner(
    calls: &dyn Calls,
    owner: &Owner,
    sum: &SumCalls,
) -> Outcome<Vec<(CallGroup, CallSum)>> {
    let sums = calls.sum_calls(owner, sum.clone()).await;
    Ok(sums.map_err(contexture::EngineError::from)?)
}

/// The sums of all owners that have calls, in order of their names.
async fn sum_owners(
    calls: &dyn Calls,
    sum: &SumCalls,
) -> Outcome<Vec<(Owner, Vec<(CallGroup, CallSum)>)>> {
    const PAGE: usize = 100;
    let mut sums: Vec<(Owner, Vec<(CallGroup, CallSum)>)> = Vec::new();
    loop {
        let after = sums.last().map(|(owner, _)| owner);
        let owners = calls.list_call_owners(after, PAGE).await;
        let owners = owners.map_err(contexture::EngineError::from)?;
        if owners.is_empty() {
            return Ok(sums);
        }
        for owner in owners {
            let own = sum_owner(calls, &owner, sum).await?;
            sums.push((owner, own));
        }
    }
}

fn group_cell(group: &CallGroup, by: CallGrouping) -> String {
    let text = match by {
        CallGrouping::Day => {
            let day = group.day_ms.map(format_timestamp).unwrap_or_default();
            return day.chars().take(10).collect();
        }
        CallGrouping::Upstream => group.upstream.clone(),
        CallGrouping::Model => group.model.clone(),
        CallGrouping::Key => group.key.clone(),
        CallGrouping::Policy => group.policy.clone(),
        CallGrouping::Conversation => group.conversation.clone(),
        _ => group.outcome.map(|outcome| outcome.as_str().to_owned()),
    };
    // A cell must not be empty: a column without words is left out.
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| "-".to_owned())
}

fn usage_table(
    all_owners: bool,
    by: &[CallGrouping],
    sums: &[(Owner, Vec<(CallGroup, CallSum)>)],
) -> (Vec<Column>, Vec<Vec<String>>) {
    let owner = all_owners.then(|| Column::words(BY_OWNER, 10));
    let groups = by.iter().map(|by| Column::words(by.as_str(), 10));
    let groups = owner.into_iter().chain(groups);
    let names = [
        "calls", "cost", "input", "output", "cached", "failed", "saved",
    ];
    let columns = groups.chain(names.map(Column::figure)).collect();
    let figures = |sum: &CallSum| {
        let saved = match sum.saved_pico_dollars() {
            None => UNKNOWN.to_owned(),
            Some(pico) => {
                let sign = if pico < 0 { "-" } else { "" };
                format!("{sign}{}", show_money(pico.unsigned_abs()))
            }
        };
        let some = |number: u64, text: String| if number > 0 { text } else { String::new() };
        vec![
            group_thousands(sum.calls),
            match sum.pico_dollars {
                // Of calls whose models have no known price.
                0 if sum.input_tokens + sum.output_tokens > 0 => UNKNOWN.to_owned(),
                pico => show_money(pico),
            },
            group_thousands(sum.input_tokens),
            group_thousands(sum.output_tokens),
            group_thousands(sum.cache_read_tokens),
            some(sum.failed, group_thousands(sum.failed)),
            some(sum.predicted, saved),
        ]
    };
    let mut total = CallSum::default();
    let mut rows = Vec::new();
    let all = sums
        .iter()
        .flat_map(|(owner, sums)| sums.iter().map(move |sum| (owner, sum)));
    for (owner, (group, sum)) in all {
        total.add_sum(sum);
        let owner = all_owners.then(|| owner.to_string());
        let groups = by.iter().map(|by| group_cell(group, *by));
        let mut row: Vec<String> = owner.into_iter().chain(groups).collect();
        row.extend(figures(sum));
        rows.push(row);
    }
    if rows.len() > 1 {
        let mut row = vec![String::new(); by.len() + usize::from(all_owners)];
        if let Some(first) = row.first_mut() {
            "in all".clone_into(first);
        }
        row.extend(figures(&total));
        rows.push(row);
    }
    (columns, rows)
}
