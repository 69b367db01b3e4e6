//! `contexture run`: one turn with a model.

use std::sync::Arc;

use clap::Args;
use contexture::ir::Role;
use contexture::runs::Run;
use contexture::{Item, Message};

use crate::chat::{AgentArguments, RunPrinter, drive_run, print_run_result};
use crate::database::WhenMissing;
use crate::input::InputSource;
use crate::options::conversation::ConversationArguments;
use crate::options::globals::Globals;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Say something to a model, and carry out what it calls until it has answered
///
/// The answer goes to standard output as it comes; tools, the run and what it spent are told on standard
/// error. Everything is kept in the conversation as it happens: a run that was cut off goes on with
/// `contexture resume`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture run question.txt
  echo 'What did we decide?' | contexture run - --conversation support-42 --memory
  contexture run question.txt --resource ada@example.org --memory
  contexture run question.txt --to openai-chat --model gpt-5.4 --budget-cost 0.50
  contexture run question.txt --script answers.jsonl

Keys are read from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or GOOGLE_API_KEY; other addresses from
--base-url, ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GEMINI_BASE_URL.

A line of a script is an answer: \"text\", {\"text\"?, \"calls\": [{\"name\", \"arguments\"?}]}, or a provider's
whole answer. A line of a recording is {\"request\", \"response\"}, two bodies.")]
pub(crate) struct Arguments {
    /// A file with what is said, `-` for standard input
    file: String,
    #[command(flatten)]
    place: ConversationArguments,
    #[command(flatten)]
    talk: AgentArguments,
}

/// Runs the command.
///
/// # Errors
/// The input cannot be read, there is no model to ask, or the run's.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let task = read_task(&InputSource::from(arguments.file.as_str()))?;
    let engine = arguments
        .talk
        .open_engine(WhenMissing::Create, globals)
        .await?;
    // What is wrong with the options is told before anything is kept.
    let model = arguments.talk.build_model()?;
    let chat = arguments
        .talk
        .open_conversation(&engine, &arguments.place, globals)
        .await?;
    let teller = Arc::new(RunPrinter::new(globals));
    let agent = arguments
        .talk
        .build_agent(&chat, model, Arc::clone(&teller))?;
    if arguments.place.conversation.is_none() && !globals.quiet && !globals.json {
        write::print_stderr(&format!("conversation {}\n", chat.id()));
    }
    let said = Item::Message(Message::text(Role::User, task));
    let mut run = Run::begin(&chat, &agent, [said]).await?;
    let driven = drive_run(&mut run).await;
    teller.close_line();
    let printed = print_run_result(driven, &run, &arguments.talk, globals).await;
    chat.wait_for_summary().await;
    printed
}

fn read_task(source: &InputSource) -> Outcome<String> {
    let text = source.read_text()?;
    // Editors end a file with a newline, which nobody meant to say.
    let text = text.trim_end();
    if text.is_empty() {
        let message = format!("{source} is empty: nothing is said");
        return Err(Failure::bad_input("empty", message));
    }
    Ok(text.to_owned())
}
