//! What is stored of a run, and how it is found.
//!
//! A run's *record* is state on the conversation's tree while the run is open; its *entry* is a copy outside the tree,
//! by which runs are listed; its *end node* says how it ended. The tree is authoritative: if record, end node and entry
//! disagree after a crash, the entry is corrected.
//!
//! | what | where | from | until |
//! |---|---|---|---|
//! | input of a queued run | outside the tree, `queued-runs/<id>` | before the entry | the first append |
//! | entry | outside the tree, `runs/<id>` | before the first append | never removed |
//! | record | state of the branch's head | the first append, with the input | the end node |
//! | start markers, values | state of the branch's head | the step that needs them | the end node |
//! | results of durable steps | nodes of the branch | their step | never removed |
//! | end node | a node of the branch | the last append | never removed |
//!
//! All ids and keys derive from the run and their subject, so a step that is repeated after a crash writes the same
//! nodes again, which the store ignores. Not here: when something is stored (`crate::steps`).

mod run_end;
mod run_entry;
mod run_list;
mod state_keys;
mod step_result;
mod values;

pub(crate) use run_end::StoredRunEnd;
pub(crate) use run_entry::{RUN_STATE_VERSION, RunRecord, head_to_string};
pub use run_entry::{RunEntry, RunStatus};
pub use run_list::{RunCursor, RunPage, RunQuery, list_runs, list_runs_with};
pub(crate) use state_keys::{
    RUNS_PREFIX, approval_node_id, cancel_key, child_branch, child_id, child_key, find_node,
    inbox_node_id, inbox_prefix, node_id, nth_node_id, open_run_of_key, output_node_id,
    queued_input_key, rejection_node_id, run_key, side_usage_key, started_key, state_key, step_key,
    stop_key, value_key,
};
pub(crate) use step_result::{load_step_result, step_node_id, step_result_node};
pub(crate) use values::{conversation_scope, load_value, put_value};
