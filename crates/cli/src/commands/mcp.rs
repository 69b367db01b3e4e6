//! `contexture mcp`: the database for agents, over the Model Context Protocol on the standard streams.

use clap::Args;
use contexture_mcp::{Access, Caller, ToolSelection, serve_stdio};

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// Serve the conversations to an agent, over the Model Context Protocol
///
/// Meant to be started by a client, which speaks on standard input and output and ends it by closing them.
/// Problems are told on standard error.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  claude mcp add contexture -- contexture mcp
  codex mcp add contexture -- contexture mcp --read-only
  contexture mcp --tools search,read,memory    # fewer definitions in the client's prompt
  contexture mcp --db team.db --owner acme/ada

docs/mcp.md lists the tools.")]
pub(crate) struct Arguments {
    /// Offer only tools that read
    #[arg(long)]
    read_only: bool,
    /// Offer only these tools: search, read, memory, branches, budget, rules, or single ones by their names
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The database cannot be opened, or the client does not speak the protocol.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let tools = arguments.select_tools()?;
    // An agent that is told to keep a note may be the first to keep anything.
    let engine = database::open_engine(globals, WhenMissing::Create).await?;
    let access = match arguments.read_only {
        true => Access::Read,
        false => Access::Write,
    };
    let mut caller = Caller::new(database::resolve_owner(globals)?, access);
    if let Some(tools) = tools {
        caller = caller.with_tools(tools);
    }
    serve_stdio(engine, caller).await.map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        Failure::new(Exit::BadInput, "protocol", message)
            .with_hint("this command is meant to be started by a client, see docs/mcp.md")
    })?;
    Ok(Exit::Done)
}

impl Arguments {
    /// The tools that were asked for; `None`: all. Before a database is made.
    fn select_tools(&self) -> Outcome<Option<ToolSelection>> {
        if self.tools.is_empty() {
            return Ok(None);
        }
        let selected = ToolSelection::from_words(self.tools.iter().map(String::as_str));
        let selected = selected.map_err(|unknown| {
            Failure::usage(unknown.to_string()).with_hint("docs/mcp.md lists the tools")
        });
        Ok(Some(selected?))
    }
}
