//! Where something is said: options of `run` and `chat`.

use clap::Args;

/// The options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConversationArguments {
    /// The conversation, made if there is none; default: a new one
    #[arg(long, short, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// What a new conversation is about, an end user say: its notes are there in all conversations about it
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) resource: Option<String>,
}
