//! TODO.

mod calibration;
mod compile;
mod external;
mod inputs;
mod layer_contributions;
mod options;
mod replay;
mod stored_inputs;

pub(crate) use calibration::{learn_from_usage, load_calibrated_range};
pub use compile::CompiledCall;
pub(crate) use compile::compile_call;
pub(crate) use external::compile_external;
pub use options::{CompileOptions, RegistryTools};
pub use replay::Replayed;
pub(crate) use replay::{list_response_ids, replay_call};
pub(crate) use stored_inputs::{CallRecord, response_record, response_status};
