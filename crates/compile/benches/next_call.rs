//! What a call costs behind one more step (an answer and a question, or a call and its output): time and what is asked of the allocator, for conversations of 10,000, 100,000
//! and 1,000,000 items. `cargo bench -p contexture-compile --bench next_call`; arguments are other sizes.
//!
//! Plain medians: criterion would warm up on a history that grows with every sample. Counting allocations takes time, so times
//! and bytes are of different calls.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark: its figures go to the terminal"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use contexture_catalogue::Catalogue;
use contexture_compile::{
    CompileInput, CompileRequest, Compiled, GrowingPath, PathItem, Plan, Scratch, Target,
    TokenCounter, compile,
};
use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};
use contexture_tokens::{Encoding, counter_for};

/// Calls that are measured.
const CALLS: usize = 101;

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let sizes = match sizes.is_empty() {
        true => vec![10_000, 100_000, 1_000_000],
        false => sizes,
    };
    let counter = counter_for(Encoding::O200kBase);
    counter.count("loads the vocabulary");
    let all = 1_000_000_000;
    let targets = [
        (
            "openai, all sent",
            Target::openai_chat("gpt-4o").window(all),
        ),
        (
            "openai, 128,000",
            Target::openai_chat("gpt-4o").window(128_000),
        ),
        (
            "anthropic, all sent",
            Target::anthropic("claude-sonnet-4-5").window(all),
        ),
        (
            "anthropic, 128,000",
            Target::anthropic("claude-sonnet-4-5").window(128_000),
        ),
    ];
    for size in sizes {
        for (name, target) in &targets {
            let request = target.build_request(Catalogue::builtin()).unwrap();
            measure_case(&format!("{size:>9} items, {name}"), size, &request, counter);
        }
    }
}

fn measure_case(label: &str, size: usize, request: &CompileRequest, counter: &dyn TokenCounter) {
    let mut path: GrowingPath = (1..size).map(item).collect();
    let mut scratch = Scratch::new();
    let start = Instant::now();
    let mut plan = run(&path, &Plan::default(), request, counter, &mut scratch).plan;
    let cold = start.elapsed();
    // The first calls settle what the first one has decided.
    let (mut times, mut bytes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for call in 0..2 * CALLS + 4 {
        path.extend([item(size + 2 * call), item(size + 2 * call + 1)]);
        if call % 2 == 0 {
            let start = Instant::now();
            let compiled = black_box(run(&path, &plan, request, counter, &mut scratch));
            times.push(start.elapsed());
            plan = compiled.plan;
        } else {
            let info = measure(|| {
                let compiled = black_box(run(&path, &plan, request, counter, &mut scratch));
                plan = compiled.plan;
            });
            bytes.push(info.bytes_total);
            counts.push(info.count_total);
        }
    }
    let times: Vec<Duration> = sorted(times.split_off(2));
    let (bytes, counts) = (sorted(bytes.split_off(2)), sorted(counts.split_off(2)));
    println!(
        "{label:<38} cold {cold:>9.2?}  next {:>9.2?} (90 %: {:>9.2?})  {:>9} bytes (most {:>9}) in {:>5} allocations",
        times[times.len() / 2],
        times[times.len() * 9 / 10],
        bytes[bytes.len() / 2],
        bytes[bytes.len() - 1],
        counts[counts.len() / 2],
    );
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list
}

fn run(
    path: &GrowingPath,
    plan: &Plan,
    request: &CompileRequest,
    counter: &dyn TokenCounter,
    scratch: &mut Scratch,
) -> Compiled {
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &[],
        plan,
        request,
        counter,
        cancel: None,
    };
    compile(&input, scratch).unwrap()
}

/// The items of an agent's session without end: an answer and the next question, a call and its output. Every 4,000 items a
/// person says something that is to hold; what is quoted of that is written in each call.
fn item(at: usize) -> PathItem {
    let words = "the parser reads the next token and reports where it stands ";
    let id = format!("call_{}", at / 4);
    PathItem::new(match at % 4 {
        0 => Item::from(Message::text(
            Role::Assistant,
            format!("answer {at}: {words}"),
        )),
        1 if at % 4_000 == 1 => {
            let rule = format!("Never touch file number {} again.", at / 4);
            Message::text(Role::User, rule).into()
        }
        1 => Message::text(Role::User, format!("question {at}: {words}")).into(),
        2 => FunctionCall::new(id, "read_file", format!("{{\"line\":{at}}}")).into(),
        _ => FunctionCallOutput::new(id, Output::Text(format!("{at}: {}", words.repeat(3)))).into(),
    })
}
