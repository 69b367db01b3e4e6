//! A run that is cut off at any call of the store, and gone on with by another process, is the run that was not cut off.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_engine::EngineError;
use contexture_layers::Rerun;
use contexture_runs::{RunError, Turn};
use contexture_store::{MemoryStore, Store};
use contexture_store_testkit::{Faulty, InjectedFault};

use crate::scripted_agent::{UNKNOWN, begun, contents, go_on, set_up, timeless_spent, unknown};

const STAGES: usize = 8;

async fn fresh() -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    set_up(Arc::clone(&store)).await;
    store
}

/// What differs. A tool that was cut off is answered otherwise, and that answer is longer: later compactions may stand
/// elsewhere, and what comes behind them has other ids. Then what was said and done is compared, in order.
fn differences(
    whole: &BTreeMap<String, String>,
    cut: &BTreeMap<String, String>,
    unknown: usize,
) -> Vec<String> {
    if unknown > 0 {
        let (was, is) = (words(whole), words(cut));
        let pairs = was.iter().zip(&is).filter(|(was, is)| was != is);
        let different = pairs.map(|(was, is)| format!("was {was}\n  is  {is}"));
        let more = was.len().abs_diff(is.len());
        return different
            .chain((more > 0).then(|| format!("{more} more")))
            .collect();
    }
    let mut different = Vec::new();
    for name in whole.keys().chain(cut.keys()) {
        let (was, is) = (whole.get(name), cut.get(name));
        if was != is {
            different.push(format!("{name}\n  was {was:?}\n  is  {is:?}"));
        }
    }
    different
}

/// What was said and done, in order, without ids, what payloads were, and what a tool answered that may be cut off.
fn words(lines: &BTreeMap<String, String>) -> Vec<String> {
    let mut words = Vec::new();
    for (name, line) in lines {
        let made_of_it = name.ends_with("answer") || name.contains("state @");
        if made_of_it || line.contains("\"compaction\"") {
            continue;
        }
        if line.contains(UNKNOWN) || line.contains("once {}") {
            words.push("what it did once".to_owned());
            continue;
        }
        let parts = line.split_inclusive(|c: char| !c.is_ascii_hexdigit());
        let parts = parts.map(|part| if part.len() > 32 { "#" } else { part });
        words.push(parts.collect());
    }
    words
}

fn store_failed(error: &RunError) -> bool {
    matches!(error, RunError::Engine(EngineError::Store(_)))
}

// The clock stands still, so waiting for a process to count as dead takes no time.
#[tokio::test(start_paused = true)]
async fn cut_off_at_any_call_of_the_store_it_is_the_same_run() {
    let plain = fresh().await;
    let counted = Arc::new(Faulty::never(Arc::clone(&plain)));
    let whole: Turn = go_on(counted.clone(), STAGES, Rerun::Unknown)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(whole.text, "All done.");
    let wanted = contents(&plain).await;
    assert!(wanted.values().any(|line| line.contains("\"compaction\"")));
    let calls: usize = usize::try_from(counted.call_counts().values().sum::<u64>()).unwrap();
    println!("{calls} calls of the store, {} things", wanted.len());
    let mut wrong = Vec::new();
    let (mut resumed, mut unknowns) = (0, 0);
    // All of them in a soak; else one of each four.
    let every: usize = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 1,
        None => 4,
    };
    for (offset, fault) in [(1, InjectedFault::Before), (2, InjectedFault::After)] {
        for call in (offset.min(every)..=calls).step_by(every) {
            let plain = fresh().await;
            let faulty = Arc::new(Faulty::failing_call(Arc::clone(&plain), call as u64, fault));
            let mut turn = match go_on(faulty.clone(), STAGES, Rerun::Unknown).await {
                Err(error) => {
                    if !store_failed(&error) {
                        wrong.push(format!("{call} {fault:?}: {error:?}"));
                        continue;
                    }
                    None
                }
                Ok(turn) => turn,
            };
            let left = begun(&plain).await;
            if turn.is_none() {
                resumed += 1;
                match go_on(Arc::clone(&plain), STAGES, Rerun::Unknown).await {
                    Ok(gone_on) => turn = gone_on,
                    Err(error) => {
                        wrong.push(format!("{call} {fault:?}: resumed: {error:?}"));
                        continue;
                    }
                }
            }
            let told = unknown(&plain).await;
            if told != left {
                wrong.push(format!("{call} {fault:?}: begun {left:?}, told {told:?}"));
            }
            unknowns += told.len();
            if let Some(turn) = turn {
                let (was, is) = (timeless_spent(whole.usage), timeless_spent(turn.usage));
                if was != is || turn.text != whole.text || turn.run != whole.run {
                    wrong.push(format!("{call} {fault:?}: {whole:?}\n {turn:?}"));
                }
            }
            let is = contents(&plain).await;
            let different = differences(&wanted, &is, told.len());
            if let Some(first) = different.first() {
                wrong.push(format!(
                    "{call} {fault:?}: {} differ: {first}",
                    different.len()
                ));
            }
        }
    }
    println!("{resumed} times resumed, {unknowns} calls that nobody knows of");
    let shown: Vec<String> = wrong
        .iter()
        .step_by(wrong.len() / 12 + 1)
        .map(|one| one.chars().take(900).collect())
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{shown:#?}", wrong.len());
    assert!(resumed > calls / every && unknowns > 0);
}
