//! What a session may have used whose log reports nothing: counted, and marked as an estimate wherever it is shown.
//!
//! Each answer is taken to have been given the whole history before it. Tool definitions are in few logs and in no estimate,
//! and nothing is said of caches and money.

use contexture_ir::Origin;
use contexture_sessions::Session;
use contexture_tokens::TokenCounter;

/// Tokens counted of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEstimate {
    /// Number of answers of a model.
    pub calls: u64,
    /// Input tokens over all answers.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
}

/// Counts the tokens of a session on its main path.
#[must_use]
pub fn estimate_session(session: &Session, counter: &dyn TokenCounter) -> SessionEstimate {
    let mut estimate = SessionEstimate::default();
    // The branch last worked on stands for the session: others share most of their calls with it.
    let Some(head) = session.heads.first() else {
        return estimate;
    };
    let count = |text: &str| counter.count(text).count;
    let instructions = session
        .instructions
        .iter()
        .flat_map(|message| &message.content);
    let mut before: u64 = instructions
        .filter_map(|part| part.as_text())
        .map(count)
        .sum();
    let mut was_model = false;
    for node in session.path_to(head.node) {
        let Some(node) = session.tree.get(node) else {
            continue;
        };
        let tokens = count(&node.item.text());
        let is_model = node.origin == Origin::Model;
        if is_model {
            // Items of the model that follow each other are one answer, which is given what stands before all of them.
            if !was_model {
                estimate.calls += 1;
                estimate.input_tokens = estimate.input_tokens.saturating_add(before);
            }
            estimate.output_tokens = estimate.output_tokens.saturating_add(tokens);
        }
        before = before.saturating_add(tokens);
        was_model = is_model;
    }
    estimate
}
