//! `contexture ui`: the inspector over a database, for the person at this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use clap::Args;
use contexture_server::{App, Config, Overrides, Server};
use serde_json::json;

use crate::commands::serve::listen_for_signals;
use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Look at conversations in a browser: what the model saw, why, and what it cost
#[derive(Debug, Args)]
#[command(after_long_help = "\
It serves the pages on this machine alone, until Ctrl-C. `contexture serve` has the same pages at
/ui; keys and what pages may change are said in its configuration.

Examples:
  contexture ui
  contexture ui support-42
  contexture ui --db support.db --no-open")]
pub(crate) struct Arguments {
    /// The conversation to show first; default: the list of all
    conversation: Option<String>,
    /// Port to listen on; default: any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
}

/// Runs the command.
///
/// # Errors
/// The database cannot be opened, or the port is taken.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let config = Config::default().with_overrides(Overrides {
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port))),
        db: globals.db.clone(),
        owner: globals.explicit_owner()?,
    });
    // To look at nothing is a mistake in the name of the database.
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let server = Server::bind(App::new(engine, config)?).await?;
    let address = server.local_addr();
    let (shutdown, second_ctrl_c) = listen_for_signals().map_err(|error| {
        let message = format!("cannot listen for signals: {error}");
        Failure::new(Exit::Fault, "signals", message)
    })?;
    let page = arguments.conversation.as_deref();
    let page = page.map(|id| format!("c/{id}")).unwrap_or_default();
    let url = format!("http://{address}/ui/{page}");
    match globals.json {
        true => write::print_json(&json!({ "url": url }))?,
        // On standard output: it is what was asked for.
        false => write::print_styled(&format!("{url}\n"))?,
    }
    if !arguments.no_open && open_in_browser(&url).is_err() && !globals.quiet {
        write::print_stderr("no browser could be started here; open the address yourself\n");
    }
    tokio::select! {
        () = server.run_until(shutdown) => Ok(Exit::Done),
        () = second_ctrl_c => Ok(Exit::Interrupted),
    }
}

/// Asks the desktop to show an address.
fn open_in_browser(url: &str) -> io::Result<()> {
    // Without a shell between: an address may have characters that mean something to one.
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(before).arg(url);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().map(|_| ())
}
