//! Token counts calibrated by reported usage, per owner and model.
//!
//! What was learned is stored among the owner's values, beside the tree, and applied where an epoch begins. A handle
//! reads it once per model, and again after a version conflict. Nothing here fails a call: a value that cannot be read
//! counts as not learned, one that cannot be stored is learned another time.
//!
//! Not here: the arithmetic ([`contexture_compile::Calibration`]).

use contexture_compile::{
    CalibratedRange, Calibration, Cancel, CompileInput, CompileRequest, Compiled, CountedRequest,
    Pass, Refusal, Report, RetryBudget, Target, TokenBounds, compile,
};
use contexture_ir::{ContentHash, Usage};
use contexture_store::{Error as StoreError, ExpectedVersion, KeyScope, PutEntry};
use contexture_wire::TooLong;

use super::inputs::{CallInputs, TreeInputs};
use super::options::CompileAttempt;
use crate::handle::{CachedCalibration, Conversation};

/// What the keys begin with, in the owner's scope; format and model follow.
const PREFIX: &str = "calibration/";

/// How long a key may be.
const LONGEST: usize = 255;

/// How often a concurrent write is met with another attempt.
const ATTEMPTS: usize = 8;

/// Compiles, with counts narrowed by what is known of the model. What an epoch began with holds through
/// it, as known content may count otherwise under new knowledge; where an epoch begins anyway, or nothing
/// fits, the newest counts.
pub(crate) async fn compile_calibrated(
    chat: &Conversation,
    inputs: &mut CallInputs,
    given: &TreeInputs<'_>,
    cancel: Option<&Cancel>,
    attempt: CompileAttempt,
) -> Result<Compiled, Refusal> {
    // An epoch keeps the range it began with: with another one, known content could count differently and be
    // cut differently, which would end the cached prefix for nothing.
    let newest = load_calibrated_range(chat, &inputs.request).await;
    let passes = inputs.passes.clone();
    let passes: Vec<&dyn Pass> = passes.iter().map(AsRef::as_ref).collect();
    let plan = &given.plan;
    let latched = plan.prefix.is_some() && attempt == CompileAttempt::First;
    let known = chat.engine().should_calibrate() && latched;
    inputs.request.calibrated_range = if known { plan.calibrated_range } else { newest };
    let compiled = compile_with_scratch(chat, &inputs.compile_input(given, &passes, cancel));
    let begins = match &compiled {
        Ok(compiled) => compiled.report.epoch.opened,
        Err(refusal) => matches!(refusal, Refusal::DoesNotFit { .. }),
    };
    // The first compile answers whether an epoch begins. Only then may the newest range be used, in a second
    // compile; the scratch memory makes that one cheap.
    if !begins || inputs.request.calibrated_range == newest {
        return compiled;
    }
    inputs.request.calibrated_range = newest;
    compile_with_scratch(chat, &inputs.compile_input(given, &passes, cancel))
}

fn compile_with_scratch(
    chat: &Conversation,
    input: &CompileInput<'_>,
) -> Result<Compiled, Refusal> {
    chat.with_scratch(|scratch| compile(input, scratch))
}

/// Loads the range by which counts of a request are calibrated for its model now; `None` if they are not.
pub(crate) async fn load_calibrated_range(
    chat: &Conversation,
    request: &CompileRequest,
) -> Option<CalibratedRange> {
    if !chat.engine().should_calibrate() {
        return request.calibrated_range;
    }
    let key = calibration_key(request.target_name(), &request.model);
    let remembered = chat.calibration_cache().lock().get(&key).cloned();
    let known = match remembered {
        Some(known) => known,
        None => load_calibration(chat, &key).await.unwrap_or_default(),
    };
    known.calibration.calibrated_range_of(request)
}

/// Learns how a model counts from what its provider reported for a request. Calls teach when their answers are
/// recorded; this is for what was sent in another way.
pub(crate) async fn learn_from_usage(
    chat: &Conversation,
    counting: &CountedRequest,
    usage: Option<&Usage>,
) {
    if let Some(reported) = usage.and_then(|usage| usage.input_tokens) {
        let learn = |known: &mut Calibration| known.learn_from_usage(counting, reported);
        learn_counts(chat, counting, &learn).await;
    }
}

/// Learns from a refusal of a call as too long, stores what was learned, and returns what the call may take when it is compiled
/// once more; `None` where that would be the same request. `sent` is the report of the refused request.
pub(crate) async fn budget_after_refusal(
    chat: &Conversation,
    target: &Target,
    sent: &Report,
    refused: TooLong,
) -> Option<RetryBudget> {
    let counting = CountedRequest::from(sent);
    // First of all, and stored: a process that ends here must not send the same request again, and neither must
    // the next call of this epoch.
    let learn = |known: &mut Calibration| known.learn_from_refusal(&counting, refused);
    learn_counts(chat, &counting, &learn).await;
    let request = target.build_request(chat.engine().catalogue()).ok()?;
    let sent = TokenBounds::between(sent.totals.low, sent.totals.upper);
    RetryBudget::after_refusal(&request, sent, refused)
}

/// Changes what is known of a model's counts, and stores it.
async fn learn_counts(
    chat: &Conversation,
    counting: &CountedRequest,
    learn: &(dyn Fn(&mut Calibration) + Send + Sync),
) {
    if !chat.engine().should_calibrate() {
        return;
    }
    let key = calibration_key(&counting.format, &counting.model);
    // Taken out while it is used: a second learner on this handle reads the stored version and meets the
    // conflict in the store, instead of overwriting what was learned here.
    let mut remembered = chat.calibration_cache().lock().remove(&key);
    // After a conflict `remembered` is empty, so the next attempt reads what the other writer stored.
    for _ in 0..ATTEMPTS {
        let known = match remembered.take() {
            Some(known) => Ok(known),
            None => load_calibration(chat, &key).await,
        };
        let learned = match known {
            Ok(known) => store_learned(chat, &key, known, learn).await,
            Err(error) => Err(error),
        };
        match learned {
            Ok(()) => return,
            Err(StoreError::VersionConflict { .. }) => {}
            Err(error) => {
                tracing::debug!(%error, key, "what was learned of a model's counts is not stored");
                return;
            }
        }
    }
}

async fn store_learned(
    chat: &Conversation,
    key: &str,
    mut known: CachedCalibration,
    learn: &(dyn Fn(&mut Calibration) + Send + Sync),
) -> Result<(), StoreError> {
    let before = known.calibration.clone();
    learn(&mut known.calibration);
    // Most answers teach nothing new; those cost no write.
    if known.calibration != before {
        // Strings and numbers: nothing that could not be written.
        let value = serde_json::to_vec(&known.calibration).unwrap_or_default();
        let put = PutEntry {
            key: key.to_owned(),
            value: Some(value.into()),
            expect: known
                .version
                .map_or(ExpectedVersion::Absent, ExpectedVersion::Version),
            at_ms: chat.engine().now_ms(),
        };
        let store = chat.store();
        let version = store.put_entry(chat.owner(), &KeyScope::Owner, put).await?;
        known.version = Some(version);
    }
    chat.calibration_cache()
        .lock()
        .insert(key.to_owned(), known);
    Ok(())
}

/// What is stored of a model, remembered from now on.
async fn load_calibration(chat: &Conversation, key: &str) -> Result<CachedCalibration, StoreError> {
    let store = chat.store();
    let entry = store.get_entry(chat.owner(), &KeyScope::Owner, key).await?;
    let known = entry.map(|entry| CachedCalibration {
        // Of another version of this program, say: it is learned anew.
        calibration: serde_json::from_slice(&entry.value).unwrap_or_default(),
        version: Some(entry.version),
    });
    let known = known.unwrap_or_default();
    let mut all = chat.calibration_cache().lock();
    all.insert(key.to_owned(), known.clone());
    Ok(known)
}

fn calibration_key(format: &str, model: &str) -> String {
    let key = format!("{PREFIX}{format}/{model}");
    if key.len() <= LONGEST {
        return key;
    }
    // Names of models have no limit; keys of the store do.
    format!("{PREFIX}{format}/{}", ContentHash::of(model.as_bytes()))
}
