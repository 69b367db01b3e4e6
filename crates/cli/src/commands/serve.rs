//! `contexture serve`: the HTTP API and the proxy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use contexture_server::{
    App, Config, ConfigError, Overrides, ServeError, Server, UpstreamConfigError,
};
use serde_json::json;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::database::{self, WhenMissing};
use crate::logs::{LogFormat, LogOptions};
use crate::options::globals::Globals;
use crate::output::error_messages::error_chain;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Serve conversations over HTTP, and pass requests on to providers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without keys it listens on this machine only, for the owner of the command line. What was said
last wins: the file, the environment, options. SIGTERM or Ctrl-C ends it once requests that run
are answered; a second Ctrl-C ends it at once.

Examples:
  contexture serve
  contexture serve --listen 127.0.0.1:9000 --db support.db
  contexture serve --config contexture.toml
  contexture keys new --name laptop --owner acme/ada    # who may call from elsewhere")]
pub(crate) struct Arguments {
    /// Address and port to listen on; default: 127.0.0.1:8484
    #[arg(long, env = "CONTEXTURE_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The configuration: keys, upstreams, policies, limits
    #[arg(long, env = "CONTEXTURE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    logs: LogOptions,
}

/// Runs the command.
///
/// # Errors
/// The configuration is wrong, the address cannot be listened on, or the database cannot be opened.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let config = load_config(arguments, globals)?;
    // The configuration may name the database, so it is read before it is opened.
    let globals = Globals {
        db: config.server.db.clone(),
        ..globals.clone()
    };
    let _telling = arguments.logs.start_logging()?;
    let engine = database::open_engine(&globals, WhenMissing::Create).await?;
    // Bound before it is told: with port 0 the address is known only now.
    let server = Server::bind(App::new(engine, config)?).await?;
    let address = server.local_addr();
    // Before it says that it listens: whoever reads that may press Ctrl-C at once.
    let (shutdown, second_ctrl_c) = listen_for_signals().map_err(|error| {
        let message = format!("cannot listen for signals: {error}");
        Failure::new(Exit::Fault, "signals", message)
    })?;
    if globals.json {
        write::print_json(&json!({ "listening": address.to_string() }))?;
    } else if arguments.logs.log_format == LogFormat::Json {
        // Nothing but events is on standard error.
        tracing::info!(%address, "listening");
    } else if !globals.quiet {
        write::print_stderr(&format!("listening on http://{address}\n"));
    }
    tokio::select! {
        () = server.run_until(shutdown) => Ok(Exit::Done),
        () = second_ctrl_c => Ok(Exit::Interrupted),
    }
}

/// The configuration file, with what the command line says instead.
fn load_config(arguments: &Arguments, globals: &Globals) -> Outcome<Config> {
    let config = match &arguments.config {
        Some(file) => Config::load(file)?,
        None => Config::default(),
    };
    Ok(config.with_overrides(Overrides {
        listen: arguments.listen,
        db: globals.db.clone(),
        owner: globals.explicit_owner()?,
    }))
}

/// Waits for Ctrl-C or what service managers send, and for a second Ctrl-C. Both are listened for from this call on, and
/// not from the time when they are first awaited.
pub(crate) fn listen_for_signals()
-> io::Result<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let (mut first, mut second) = (listen_for_ctrl_c()?, listen_for_ctrl_c()?);
    #[cfg(unix)]
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = async move {
        #[cfg(unix)]
        tokio::select! {
            _ = first.recv() => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        first.recv().await;
    };
    let second_ctrl_c = async move {
        for _ in 0..2 {
            second.recv().await;
        }
    };
    Ok((shutdown, second_ctrl_c))
}

#[cfg(unix)]
fn listen_for_ctrl_c() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

#[cfg(not(unix))]
fn listen_for_ctrl_c() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let place = json!({ "file": error.file, "line": error.line, "key": error.key });
        let hint = match error.page() {
            Some(page) => format!("{page} lists what may be said"),
            None => "--config names the file; without it the defaults hold".to_owned(),
        };
        Self::bad_input("configuration", error.to_string())
            .with_details(place)
            .with_hint(hint)
    }
}

impl From<UpstreamConfigError> for Failure {
    fn from(error: UpstreamConfigError) -> Self {
        Self::bad_input("upstream", error_chain(&error))
            .with_hint("set the variable, or name another one in the configuration")
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let message = error_chain(&error);
        match error {
            ServeError::NoKeys { .. } => Self::new(Exit::Refused, "no_keys", message)
                .with_hint("`contexture keys new` makes a key for the configuration"),
            _ => Self::new(Exit::Stream, "listen", message)
                .with_hint("is another server there? --listen names another address"),
        }
    }
}
