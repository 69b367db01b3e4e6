//! Options that every command takes.

use std::env;

use clap::{Args, ValueEnum};
use contexture::Owner;

use crate::output::failure::Outcome;
use crate::output::shell_command::option_with_value;

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options for all commands")]
pub(crate) struct Globals {
    /// The database: a file, made if it does not exist, or postgres://USER@HOST/DATABASE
    ///
    /// Default: contexture/contexture.db under $XDG_DATA_HOME, or under ~/.local/share. Only
    /// commands that keep or show conversations open it. `memory:` forgets at the end. A PostgreSQL
    /// database is made ready by `contexture migrate`; a password is better in CONTEXTURE_DB than
    /// here, where other users of the machine may see it.
    #[arg(
        long,
        env = "CONTEXTURE_DB",
        hide_env_values = true,
        value_name = "FILE",
        global = true
    )]
    pub(crate) db: Option<String>,
    /// Whose conversations: nobody sees those of another owner; default: local
    #[arg(
        long,
        env = "CONTEXTURE_OWNER",
        hide_env_values = true,
        value_name = "NAME",
        global = true
    )]
    pub(crate) owner: Option<String>,
    /// Results, reports and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Colours: on a terminal (and if NO_COLOR is not set), always, never
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        global = true
    )]
    pub(crate) color: Color,
    /// No reports and no progress, only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Globals {
    /// Whose conversations, if that was said.
    ///
    /// # Errors
    /// A name that breaks the rule for owners.
    pub(crate) fn explicit_owner(&self) -> Outcome<Option<Owner>> {
        Ok(self.owner.as_deref().map(Owner::new).transpose()?)
    }

    /// The options that say where and whose, to be typed again. What the environment says it says again, and the
    /// address of a server may have a password in it.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        // What the environment says it will say again; only what was typed is repeated.
        let said = |variable: &str, value: &Option<String>| {
            let value = value.clone()?;
            (env::var(variable).as_ref() != Ok(&value)).then_some(value)
        };
        // An address may hold a password, which must not be shown on a terminal or in a log.
        let db = said("CONTEXTURE_DB", &self.db).filter(|db| !db.contains("://"));
        let db = db.map(|db| option_with_value("--db", db));
        let owner =
            said("CONTEXTURE_OWNER", &self.owner).map(|name| option_with_value("--owner", name));
        [db, owner].into_iter().flatten().flatten().collect()
    }
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, and if `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes it the rule of both streams.
    pub(crate) fn apply_globally(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
