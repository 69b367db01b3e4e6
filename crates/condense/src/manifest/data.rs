//! The manifest: contents of a span of items, as data.
//!
//! Not here: building it ([`crate::manifest::build`]) and writing it as text ([`crate::manifest::render`]).

use contexture_ir::{ContentHash, Item, Origin};
use contexture_text::shorten_line;
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
    /// Who produced it, if that is known: a message counts as a person's words only if it is of a person. `None`: its role
    /// decides.
    pub origin: Option<Origin>,
}

impl<'a> CoveredItem<'a> {
    /// Returns items that are not stored, numbered from 0; their roles say whose words they are.
    ///
    /// ```
    /// use contexture_condense::CoveredItem;
    /// use contexture_ir::{Item, Message, Role};
    ///
    /// let items = [Item::from(Message::text(Role::User, "Take A-7 out of the order."))];
    /// assert_eq!(CoveredItem::of_items(&items)[0].index, 0);
    /// ```
    #[must_use]
    pub fn of_items(items: &'a [Item]) -> Vec<Self> {
        let covered = |(index, item)| Self {
            index,
            item,
            hash: None,
            origin: None,
        };
        items.iter().enumerate().map(covered).collect()
    }
}

/// Contents of a span of items.
///
/// Built by rules alone: the same items give the same manifest. The lists of files and of changes are complete as far as the
/// rules know the tools; everything else is as complete as the rules allow. Its JSON is stable; unknown fields are
/// ignored, absent ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Number of items it replaces.
    pub items: usize,
    /// What the user said, sentence by sentence, each shortened.
    pub user_sentences: Vec<UserSentence>,
    /// Sentences of the model that state a decision.
    pub decisions: Vec<ManifestEntry>,
    /// The calls that changed something, in their order; files that were changed are in `files`.
    pub changes: Vec<ChangingCall>,
    /// Tasks that are not done, calls without an output, and questions that nobody has answered.
    pub open: Vec<ManifestEntry>,
    /// Lines that report errors, and outputs that are marked as errors, unless the same call succeeded later.
    pub errors: Vec<ManifestEntry>,
    /// The files that tools touched, in the order of their first use.
    pub files: Vec<FileEntry>,
    /// The commands that only read; the others are changes.
    pub commands: Vec<CommandEntry>,
    /// Values of arguments and outputs, with the names they had there.
    pub named: Vec<NamedValues>,
    /// Identifiers in texts: words of letters and digits, mail addresses, ticket numbers.
    pub identifiers: Vec<Fact>,
    /// Numbers, dates and times in texts, by whose text it is: a call, the user or the assistant.
    pub numbers: Vec<NamedValues>,
    /// URLs that occur in the span.
    pub urls: Vec<Fact>,
    /// Paths that texts mention, except those in `files`.
    pub paths: Vec<Fact>,
    /// Links by which long outputs can be read again.
    pub links: Vec<LinkEntry>,
    /// Name of the tool by which the model can read what is left out; `None`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_tool: Option<String>,
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

impl ManifestEntry {
    /// A text that occurs once, on one line of at most about so many bytes.
    pub(crate) fn once(index: usize, text: &str, most: usize) -> Self {
        Self {
            index,
            text: shorten_line(text, most),
            times: 1,
        }
    }
}

/// What the user said in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserSentence {
    /// Whether it holds on, by the words it has.
    pub kind: SentenceKind,
    /// The sentence, with its item.
    #[serde(flatten)]
    pub entry: ManifestEntry,
}

/// How a sentence of the user matters for what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentenceKind {
    /// A decision, or anything else that still holds.
    Holds,
    /// A rule, a wish or a fact about the person, which standing rules quote while they hold.
    Rule,
    /// A question, a request, a report.
    Passes,
    /// The same words, numbers apart, were said at least three times: the newest of them.
    Repeats,
}

/// A call that changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangingCall {
    /// The index of the call on the path; of the last one, if it was made more than once.
    pub index: usize,
    /// Name of the tool.
    pub tool: String,
    /// The arguments by which it is known, on one line.
    pub arguments: String,
    /// Ids that its output names and its arguments do not.
    pub returned: Vec<String>,
    /// What became of it.
    pub outcome: ChangeOutcome,
    /// The first line of what was reported, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How often the same was done with the same result.
    pub times: usize,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOutcome {
    /// Its output reports no failure.
    Ok,
    /// Its output reports a failure.
    Failed,
    /// It has no output.
    Unanswered,
}

/// A value, with the first item that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The index of the item on the path.
    pub index: usize,
    /// The value as it is written there.
    pub text: String,
}

/// What tools did with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The index on the path of the call that touched it last.
    pub index: usize,
    /// The path as the tool call gave it.
    pub path: String,
    /// How often it was read, or named without being changed.
    pub read: usize,
    /// How often it was changed or created.
    pub written: usize,
    /// How often it was removed or moved away.
    pub removed: usize,
    /// How often a call that was to change it failed.
    #[serde(default)]
    pub failed: usize,
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
    pub values: Vec<Fact>,
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
