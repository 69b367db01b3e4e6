//! One model call: from the stored path to a payload, and back from its record to the same payload.
//!
//! A *call* is compiled from what the tree holds (the path, compactions in effect, pins, the plan of the call before) and
//! from what comes beside it (target, tools, contributions of the handle and of its layers). Compiling stores nothing:
//! the plan is stored with the answer, by `record`.
//!
//! The way of a call:
//!
//! 1. `options`: what the caller adds to one call;
//! 2. `compile`: reads the path once, gathers everything, and compiles;
//! 3. `contributions`: what is said beside the history; `layer_contributions`: the layers' part of it;
//! 4. `inputs`: the two halves of what goes into the compiler;
//! 5. `calibration`: counts narrowed by the usage that providers reported;
//! 6. `sent_call`: what is needed of it once it is sent; `kept_call`: keeping that until the answer
//!    comes; `stored_inputs`: what is stored of it with its answer;
//! 7. `replay`: the same payload again, byte for byte, from what was stored.
//!
//! Everything a payload depends on is in `inputs`; no clock and no random id enters it. That is what makes replay exact.
//!
//! A history that a client sent can be compiled beside the stored one, to compare what each would cost. It shares the
//! handle's scratch memory and nothing else.
//!
//! A refused call is an error that stores nothing either: compaction or a larger window can mend it, and the next compile
//! starts from the same stored state.
//! Not here: the compiler (`contexture-compile`), storing the answer (`record`), compacting first (`compaction`).

mod calibration;
mod compile;
mod contributions;
mod inputs;
mod kept_call;
mod last_target;
mod layer_contributions;
mod options;
mod predicted_cost;
mod replay;
mod sent_call;
mod stored_inputs;

pub(crate) use calibration::{budget_after_refusal, learn_from_usage, load_calibrated_range};
pub use compile::CompiledCall;
pub(crate) use compile::{AfterAnswer, compile_call, compile_external};
pub(crate) use contributions::contributions_at;
pub use kept_call::KeptCall;
pub(crate) use kept_call::{keep_call, load_kept_call, load_newest_kept_call};
pub use last_target::LastTarget;
pub(crate) use last_target::find_last_target;
pub use options::{CompileAttempt, CompileOptions, RegistryTools, SettingsSource, ToolFilter};
pub use predicted_cost::call_cache_tokens;
pub(crate) use predicted_cost::is_cut;
pub use replay::Replayed;
pub(crate) use replay::{list_response_ids, replay_call};
pub(crate) use sent_call::SentCall;
pub(crate) use stored_inputs::{CallRecord, response_record, response_status};
