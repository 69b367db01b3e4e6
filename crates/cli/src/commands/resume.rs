//! `contexture resume`: going on with a run that was cut off, or that waits for a decision.

use std::sync::Arc;

use clap::Args;
use contexture::Conversation;
use contexture::ir::{NodeId, RunId};
use contexture::runs::{ApprovalDecision, Run, store_decision};

use crate::chat::{AgentArguments, RunPrinter, drive_run, print_run_result};
use crate::database::{self, WhenMissing};
use crate::options::conversation::ConversationArguments;
use crate::options::globals::Globals;
use crate::options::node_ref::{NodeRef, resolve_node_ref};
use crate::options::run_ref::{FoundRun, find_run};
use crate::output::failure::{Failure, Outcome};

/// Go on with a run that was cut off, or that waits for a decision
///
/// It goes on from what is kept, as if nothing had happened: answers that came are not asked for again, and
/// calls that have an output are not run again. Give the options that `run` was given.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture resume 0198f3a1
  contexture resume 0198f3a1 --allow 51c2
  contexture resume 0198f3a1 --deny 51c2 --reason 'not on a Friday'

With --script, its first line answers the first request that is still to be made.")]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id, as `contexture runs` shows it
    #[arg(value_name = "RUN")]
    run: String,
    /// Allow this call that waits; may be repeated
    #[arg(long, value_name = "CALL")]
    allow: Vec<String>,
    /// Deny this call that waits; may be repeated
    #[arg(long, value_name = "CALL")]
    deny: Vec<String>,
    /// Why, for the model
    #[arg(
        long,
        value_name = "TEXT",
        requires = "deny",
        default_value = "the user said no"
    )]
    reason: String,
    #[command(flatten)]
    talk: AgentArguments,
}

/// Runs the command.
///
/// # Errors
/// There is no such run or call, it has ended, there is no model to ask, or the run's.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = arguments
        .talk
        .open_engine(WhenMissing::Refuse, globals)
        .await?;
    let owner = database::resolve_owner(globals)?;
    let FoundRun {
        id,
        conversation,
        entry,
    } = find_run(&engine, &owner, &arguments.run).await?;
    // Before decisions are stored: without a model the run could not go on with them.
    let model = arguments.talk.build_model()?;
    let place = ConversationArguments {
        conversation: Some(conversation.to_string()),
        branch: Some(entry.branch),
        resource: None,
    };
    let talk = &arguments.talk;
    let chat = talk.open_conversation(&engine, &place, globals).await?;
    // Before the run goes on, which reads them.
    store_decisions(arguments, &chat, id).await?;
    let teller = Arc::new(RunPrinter::new(globals));
    let agent = talk.build_agent(&chat, model, Arc::clone(&teller))?;
    let mut run = Run::resume(&chat, id, &agent).await?;
    let driven = drive_run(&mut run).await;
    teller.close_line();
    let printed = print_run_result(driven, &run, talk, globals).await;
    chat.wait_for_summary().await;
    printed
}

/// Stores what was decided.
async fn store_decisions(arguments: &Arguments, chat: &Conversation, run: RunId) -> Outcome<()> {
    for call in &arguments.allow {
        store_decision(
            chat,
            run,
            find_call_node(chat, call).await?,
            ApprovalDecision::Allow,
        )
        .await?;
    }
    for call in &arguments.deny {
        let reason = arguments.reason.clone();
        let decision = ApprovalDecision::Deny { reason };
        store_decision(chat, run, find_call_node(chat, call).await?, decision).await?;
    }
    Ok(())
}

/// The node of a call.
async fn find_call_node(chat: &Conversation, name: &str) -> Outcome<NodeId> {
    match resolve_node_ref(chat, name).await? {
        NodeRef::Node(node) => Ok(node.id),
        // A message may hold several calls; each is decided by itself.
        NodeRef::Message(..) => {
            let message = format!("{name:?} is a message, expected one call of it");
            Err(Failure::usage(message).with_hint("give the id that `run` told"))
        }
    }
}
