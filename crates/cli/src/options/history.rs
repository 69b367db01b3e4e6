//! How much of a history is shown, and how: options of `compile`. They describe a policy, as a server's configuration does.

use std::path::{Path, PathBuf};

use clap::Args;
use contexture::Format;
use contexture_api::policy::{
    ClearConfig, CompactConfig, PolicyConfig, PreviewConfig, WindowConfig,
};

use crate::input::unreadable_file;
use crate::output::failure::{Failure, Outcome};

/// The options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "View of the history")]
pub(crate) struct ViewArguments {
    /// A policy in TOML: the members of a table [policies.NAME] of a server's configuration. The options below go before
    /// what it says
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// At most so many of the newest turns; the first user message always stays
    #[arg(long, value_name = "COUNT")]
    turns: Option<u32>,
    /// Show tool outputs of more characters as a preview: beginning, errors, end and a link
    #[arg(long, value_name = "CHARACTERS", num_args = 0..=1, default_missing_value = "5000")]
    preview: Option<u64>,
    /// Newest tool outputs that are never cleared; default: 3
    #[arg(long, value_name = "COUNT")]
    keep_recent: Option<usize>,
    /// Never clear old tool outputs; what does not fit is cut
    #[arg(long, conflicts_with = "keep_recent")]
    no_clear: bool,
    /// Stand a manifest for what does not fit: its files, commands, errors, identifiers, numbers. Of a
    /// conversation it is stored, as `contexture compact` does
    #[arg(long)]
    compact: bool,
    /// Set no cache marks
    #[arg(long)]
    no_marks: bool,
}

impl ViewArguments {
    /// Returns the policy that the options describe. UI messages are shown whole or not at all.
    ///
    /// # Errors
    /// The file cannot be read, or holds no policy, or one with members that only a server can follow.
    pub(crate) fn resolve_policy(&self, to: Format) -> Outcome<PolicyConfig> {
        let mut policy = match &self.policy {
            Some(path) => read_policy(path)?,
            // Without one nothing is cut that would fit.
            None => PolicyConfig {
                clear: Some(ClearConfig::default()),
                cache_marks: true,
                ..PolicyConfig::default()
            },
        };
        if let Some(turns) = self.turns {
            policy.window = Some(WindowConfig {
                turns: Some(turns),
                tokens: None,
            });
        }
        if let Some(keep_recent) = self.keep_recent {
            policy.clear.get_or_insert_default().keep_recent = keep_recent;
        }
        if let Some(characters) = self.preview {
            policy.preview = Some(PreviewConfig {
                // They were asked for.
                always: true,
                ..PreviewConfig::above(characters)
            });
        }
        // Clearing saves tokens of a request; people want to see outputs.
        if self.no_clear || to == Format::Ui {
            policy.clear = None;
        }
        if to == Format::Ui {
            policy.preview = None;
        }
        if self.compact {
            policy.compact = Some(CompactConfig::Manifest);
        }
        policy.cache_marks &= !self.no_marks;
        Ok(policy)
    }
}

fn read_policy(path: &Path) -> Outcome<PolicyConfig> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| unreadable_file(path, &error))?;
    let bad = |why: String| Failure::usage(format!("--policy {shown}: {why}"));
    let policy: PolicyConfig = toml::from_str(&text).map_err(|error| {
        bad(error.to_string().trim_end().to_owned()).with_hint(
            "a policy has the members of a table [policies.NAME], such as clear = { keep_recent = 3 }",
        )
    })?;
    if let Some(fault) = policy.first_fault() {
        return Err(bad(format!("{}: {}", fault.path.join("."), fault.detail)));
    }
    let memory = policy.memory.as_option().map(|_| "memory");
    match memory.or_else(|| policy.first_server_member()) {
        Some(member) => Err(bad(format!("`{member}` is for a server's policies"))
            .with_hint("notes and skills are named by --memory and --skills")),
        None => Ok(policy),
    }
}
