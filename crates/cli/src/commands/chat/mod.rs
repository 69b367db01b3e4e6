//! `contexture chat`: turn after turn with a model.

mod approval_prompt;
mod line_input;
mod session;
mod slash;

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use clap::Args;
use tokio::sync::Mutex;

use crate::chat::{AgentArguments, RunPrinter};
use crate::database::WhenMissing;
use crate::options::conversation::ConversationArguments;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::write;

use self::approval_prompt::ApprovalPrompt;
use self::line_input::{InputEvent, LineReader};
use self::session::Chat;

/// Talk with a model: a line is said, and answered as it comes
///
/// A line that begins with `/` is a command; /help lists them. Ctrl-C cuts an answer off and keeps what is
/// finished; pressed again it leaves. Everything is kept as it happens.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture chat
  contexture chat --conversation support-42 --memory --skills .agents/skills
  contexture chat --to openai-chat --base-url https://models.example/v1
  printf 'Hello\\n/compact\\n' | contexture chat --conversation support-42 --script answers.jsonl

Keys, scripts and recordings are those of `run`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: ConversationArguments,
    #[command(flatten)]
    talk: AgentArguments,
}

/// Runs the command.
///
/// # Errors
/// There is no model to ask, or the conversation cannot be opened. What goes wrong later is told, and the
/// chat goes on.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = arguments
        .talk
        .open_engine(WhenMissing::Create, globals)
        .await?;
    let talk = &arguments.talk;
    // A missing key is told before a conversation is made.
    let model = talk.build_model()?;
    let conversation = talk
        .open_conversation(&engine, &arguments.place, globals)
        .await?;
    let teller = Arc::new(RunPrinter::new(globals));
    let person = io::stdin().is_terminal();
    // Shared with the prompt for approvals: there is only one standard input.
    let typing = Arc::new(Mutex::new(LineReader::new(person)));
    let agent = talk.build_agent(&conversation, model, Arc::clone(&teller))?;
    let agent = agent.with_approver(ApprovalPrompt::new(Arc::clone(&typing)));
    let chat = Chat {
        talk,
        globals,
        conversation,
        agent,
        printer: teller,
    };
    if !globals.quiet && !globals.json {
        if person || arguments.place.conversation.is_none() {
            let help = if person { " · /help, /quit" } else { "" };
            write::print_stderr(&format!("conversation {}{help}\n", chat.conversation.id()));
        }
        chat.print_waiting_runs().await?;
    }
    let answered = answer_lines(&chat, &typing, person).await;
    chat.conversation.wait_for_summary().await;
    answered
}

/// Answers line after line, until the input ends or somebody leaves.
async fn answer_lines(chat: &Chat<'_>, typing: &Mutex<LineReader>, person: bool) -> Outcome {
    let mut exit = Exit::Done;
    loop {
        // Released at the end of the statement: during a turn the prompt for approvals needs it.
        let typed = typing.lock().await.next_line().await?;
        match typed {
            InputEvent::End => return Ok(exit),
            InputEvent::Line(line) => match chat.process_line(line.trim()).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(Exit::Done)) => return Ok(exit),
                Ok(ControlFlow::Break(waiting)) => return Ok(waiting),
                // Nobody reads on, or the run was left by a second Ctrl-C: there is nothing to go
                // on for.
                Err(failure) if failure.is_closed_pipe() || failure.kind == "left" => {
                    return Err(failure);
                }
                Err(failure) if failure.exit == Exit::Interrupted => {
                    write::print_stderr("cut off; what came of it is kept\n");
                }
                Err(failure) => {
                    write::print_failure(&failure, chat.globals.json);
                    // People have seen it; a program looks at the end.
                    if !person {
                        exit = Exit::Findings;
                    }
                }
            },
        }
    }
}
