//! The manifest: what a span of items held, as data.
//!
//! Data, and nothing else: how it is made is [`crate::manifest::build`], how it is told [`crate::manifest::render`].

use contexture_ir::{ContentHash, Item, Role};
use serde::{Deserialize, Serialize};

/// One item of a span.
#[derive(Clone, Copy, Debug)]
pub struct CoveredItem<'a> {
    /// Its index on the path.
    pub index: usize,
    /// The item itself, as stored.
    pub item: &'a Item,
    /// Its content hash, by which it can be read again. `None`: it is not stored.
    pub hash: Option<ContentHash>,
}

/// What a span of items held.
///
/// Made by rules alone: the same items give the same manifest. The files that tools touched are complete;
/// everything else is there as far as the rules see it. Its JSON is stable; unknown fields are ignored,
/// absent ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// How many items it stands for.
    pub items: usize,
    /// What the person said, each message shortened.
    pub asked: Vec<ManifestEntry>,
    /// The files that tools touched, in the order they were first. Complete.
    pub files: Vec<FileEntry>,
    /// The commands that were run.
    pub commands: Vec<CommandEntry>,
    /// Lines that tell of errors, and outputs that are marked as errors.
    pub errors: Vec<ManifestEntry>,
    /// Tasks that are not done, and calls without an output.
    pub open: Vec<ManifestEntry>,
    /// Sentences that decide something.
    pub decisions: Vec<Decision>,
    /// Values of arguments and outputs under the names they had there.
    pub named: Vec<NamedValues>,
    /// Identifiers in texts: words of letters and digits, mail addresses, ticket numbers.
    pub identifiers: Vec<String>,
    /// Numbers, dates and times in texts.
    pub numbers: Vec<String>,
    /// URLs that the span names.
    pub urls: Vec<String>,
    /// Paths that texts mention, those of `files` apart.
    pub paths: Vec<String>,
    /// Where long outputs can be read again.
    pub links: Vec<LinkEntry>,
}

/// A line, with where it stands first and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// The index of the item on the path.
    pub index: usize,
    /// Text in one line.
    pub text: String,
    /// How often it occurs in the span.
    pub times: usize,
}

/// A sentence that decides something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Who says it.
    pub by: Speaker,
    /// The sentence, with its place.
    #[serde(flatten)]
    pub statement: ManifestEntry,
}

/// Who says something.
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

/// What tools did to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The path as it was given.
    pub path: String,
    /// How many calls read it, or named it without changing it.
    pub read: usize,
    /// How many calls changed or made it.
    pub written: usize,
    /// How many calls removed or moved it away.
    pub removed: usize,
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEntry {
    /// The index on the path of the call that ran it last.
    pub index: usize,
    /// The command, shortened.
    pub command: String,
    /// The exit code that its last output tells, if it tells one.
    pub exit: Option<i32>,
    /// Whether its last output is marked as an error.
    pub failed: bool,
    /// How often it was run.
    pub times: usize,
}

/// The values that a name had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedValues {
    /// The name; empty for values of a list that has none.
    pub name: String,
    /// Each value once, in the order they came.
    pub values: Vec<String>,
}

/// Where an item can be read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEntry {
    /// The item's index on the path.
    pub index: usize,
    /// `context://vfs/` and the hash of the item.
    pub link: String,
    /// Which tool's output it is.
    pub tool: String,
    /// How long its text is, in bytes.
    pub bytes: usize,
}
