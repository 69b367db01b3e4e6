//! Checks the answer that would end a run: against the agent's output type, then by its verifier.
//!
//! What is wrong is appended as a message that only models see, behind the answer, so that the model is asked again with both in
//! view. Because both are on the path, a resumed run goes on the same way. Not here: what layers refuse (`model_step`).

use crate::agent::{OutputError, RunEventKind, Verdict};
use crate::error::RunError;
use crate::execution::LiveRun;
use crate::record::rejection_node_id;

/// What is wrong with a final answer.
enum Fault {
    /// It is not of the output type.
    Type(String),
    /// The verifier rejected it.
    Verdict(String),
}

/// Asks for another answer if this one may not end the run. Returns whether it did.
///
/// # Errors
/// [`RunError::ModelParse`] and [`RunError::Denied`] if as many answers were rejected as the agent allows;
/// [`RunError::StepFailed`] for a verifier that failed.
pub(crate) async fn reject_final_answer(run: &mut LiveRun, answer: &str) -> Result<bool, RunError> {
    // A layer that stops a run replaces the answer by its reason.
    if run.is_stopped {
        return Ok(false);
    }
    let Some(fault) = find_fault(run, answer).await? else {
        return Ok(false);
    };
    if run.rejected_answers >= run.agent.max_refusals {
        return Err(final_error(run, fault, answer));
    }
    let feedback = match fault {
        Fault::Type(reason) => {
            format!(
                "Your answer is not of the schema that was asked for: {reason}. Answer again, with the JSON alone."
            )
        }
        Fault::Verdict(feedback) => feedback,
    };
    let node = run.feedback_item(rejection_node_id(run.id, run.step), &feedback);
    run.append_node(node, Vec::new()).await?;
    run.rejected_answers += 1;
    run.notify_observer(|| RunEventKind::ResponseRejected { feedback });
    Ok(true)
}

async fn find_fault(run: &LiveRun, answer: &str) -> Result<Option<Fault>, RunError> {
    let fault = run
        .agent
        .output
        .as_ref()
        .and_then(|output| output.find_fault(answer));
    if let Some(reason) = fault {
        return Ok(Some(Fault::Type(reason)));
    }
    let Some(verifier) = &run.agent.verifier else {
        return Ok(None);
    };
    let context = run.context();
    let verdict = run
        .abort
        .run_until_aborted(verifier.verify(answer, &context))
        .await?;
    let verdict = verdict.map_err(|source| RunError::StepFailed {
        step: "verifier".to_owned(),
        attempts: 1,
        source,
    })?;
    Ok(match verdict {
        Verdict::Accepted => None,
        Verdict::Rejected { feedback } => Some(Fault::Verdict(feedback)),
    })
}

fn final_error(run: &LiveRun, fault: Fault, answer: &str) -> RunError {
    let rejected = run.rejected_answers + 1;
    match fault {
        Fault::Type(reason) => OutputError {
            reason: format!("{reason} (of {rejected} answers none was of the agent's output type)"),
            raw: answer.to_owned(),
        }
        .into(),
        Fault::Verdict(feedback) => RunError::Denied {
            reason: format!(
                "the verifier rejected {rejected} answers, the last one saying: {feedback}"
            ),
        },
    }
}
