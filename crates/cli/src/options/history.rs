//! How much of a history is shown, and how: options of `compile`.

use clap::Args;
use contexture::Format;
use contexture::compile::{
    Clear, HistoryPolicy, MarkerPolicy, PreviewPolicy, Previewing, TextSize, Window,
};

/// The options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "View of the history")]
pub(crate) struct ViewArguments {
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
    /// The policy, from what holds without options. UI messages are shown whole or not at all.
    pub(crate) fn history_policy(&self, mut policy: HistoryPolicy, to: Format) -> HistoryPolicy {
        if let Some(turns) = self.turns {
            policy.window = Window::Turns(turns);
        }
        if let (Clear::By(clear), Some(keep)) = (&mut policy.clear, self.keep_recent) {
            clear.keep_recent = keep;
        }
        // Clearing saves tokens of a request; people want to see outputs.
        if self.no_clear || to == Format::Ui {
            policy.clear = Clear::Never;
        }
        let preview = self.preview.filter(|_| to != Format::Ui);
        policy.preview = preview.map(|characters| PreviewPolicy {
            threshold: TextSize::Characters(characters),
            // They were asked for.
            when: Previewing::Always,
            ..PreviewPolicy::default()
        });
        policy
    }

    /// Whether manifests stand for what does not fit.
    pub(crate) const fn should_compact(&self) -> bool {
        self.compact
    }

    /// Where cache marks are set.
    pub(crate) fn marker_policy(&self) -> Option<MarkerPolicy> {
        (!self.no_marks).then(MarkerPolicy::default)
    }
}
