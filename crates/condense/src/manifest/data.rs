//! The manifest: contents of a span of items, as data.
//!
//! Not here: building it ([`crate::manifest::build`]) and writing it as text ([`crate::manifest::render`]).

use contexture_ir::{ContentHash, Item, Role};
use serde::{Deserialize, Serialize};

/// One item of a span.
#[derive(Clone, Copy, Debug)]
pub struct CoveredItem<'a> {
    /// Its index on the path.
    pub index: usize,
    /// The item itself, as stored.
    pub item: &'a Item,
    /// Hash of its stored bytes, by which it can be read again; `None` if it is not stored.
    pub hash: Option<ContentHash>,
}

/// Contents of a span of items.
///
/// Built by rules alone: the same items give the same manifest. The list of files is complete for the tools the rules
/// know; everything else is as complete as the rules allow. Its JSON is stable; unknown fields are ignored, absent ones
/// are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Number of items it replaces.
    pub items: usize,
    /// Messages of the user, each shortened.
    pub asked: Vec<ManifestEntry>,
    /// The files that tools touched, in the order of their first use.
    pub files: Vec<FileEntry>,
    /// The commands that were run.
    pub commands: Vec<CommandEntry>,
    /// Lines that report errors, and outputs that are marked as errors.
    pub errors: Vec<ManifestEntry>,
    /// Tasks that are not done, and calls without an output.
    pub open: Vec<ManifestEntry>,
    /// Sentences that state a decision.
    pub decisions: Vec<Decision>,
    /// Values of arguments and outputs, with the names they had there.
    pub named: Vec<NamedValues>,
    /// Identifiers in texts: words of letters and digits, mail addresses, ticket numbers.
    pub identifiers: Vec<String>,
    /// Numbers, dates and times in texts.
    pub numbers: Vec<String>,
    /// URLs that occur in the span.
    pub urls: Vec<String>,
    /// Paths that texts mention, except those in `files`.
    pub paths: Vec<String>,
    /// Links by which long outputs can be read again.
    pub links: Vec<LinkEntry>,
}

/// A line of text, with its first item and the number of its occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// The index of the item on the path.
    pub index: usize,
    /// The text, on one line.
    pub text: String,
    /// How often it occurs in the span.
    pub times: usize,
}

/// A sentence that states a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Author of the sentence.
    pub by: Speaker,
    /// The sentence, with its item.
    #[serde(flatten)]
    pub statement: ManifestEntry,
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The person who uses the agent.
    User,
    /// The model that answers.
    Assistant,
}

impl Speaker {
    pub(crate) const fn from_role(role: Role) -> Option<Self> {
        match role {
            Role::User => Some(Self::User),
            Role::Assistant => Some(Self::Assistant),
            Role::System | Role::Developer => None,
        }
    }
}

/// What tools did with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The path as the tool call gave it.
    pub path: String,
    /// How often it was read, or named without being changed.
    pub read: usize,
    /// How often it was changed or created.
    pub written: usize,
    /// How often it was removed or moved away.
    pub removed: usize,
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEntry {
    /// The index on the path of the call that ran it last.
    pub index: usize,
    /// The command, shortened.
    pub command: String,
    /// The exit code of its last output, if the output reports one.
    pub exit: Option<i32>,
    /// Whether its last output is marked as an error.
    pub failed: bool,
    /// How often it was run.
    pub times: usize,
}

/// The values of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedValues {
    /// The name; empty for values of an unnamed list.
    pub name: String,
    /// Each value once, in the order in which they occur.
    pub values: Vec<String>,
}

/// A link by which an output can be read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEntry {
    /// The item's index on the path.
    pub index: usize,
    /// `context://vfs/` and the hash of the item.
    pub link: String,
    /// Name of the tool that gave the output.
    pub tool: String,
    /// Length of its text in bytes.
    pub bytes: usize,
}
