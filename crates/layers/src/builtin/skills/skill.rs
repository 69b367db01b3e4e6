//! What a skill is, and the rules of the published specification for its fields.
//!
//! Not here: the format of its file ([`super::front_matter`]), and where files are found ([`super::load`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use contexture_tools::Pattern;

use super::files::{SkillFileError, read_below};

/// Maximum number of characters of a name.
const NAME: usize = 64;
/// Maximum number of characters of a description.
const DESCRIPTION: usize = 1024;
/// Maximum number of characters of the compatibility field.
const COMPATIBILITY: usize = 500;
/// Maximum size of a file beside a `SKILL.md`, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// Instructions that a model reads when it needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name by which it is called; `namespace:name` where its folder has a namespace.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Licence, or where it is stated.
    pub license: Option<String>,
    /// Requirements on the environment.
    pub compatibility: Option<String>,
    /// Additional metadata of the skill.
    pub metadata: BTreeMap<String, String>,
    /// Tools that it may use without approval.
    pub allowed_tools: Vec<AllowedTool>,
    /// The instructions, as Markdown.
    pub instructions: String,
    /// Folder of its files; `None` if it has none.
    pub folder: Option<PathBuf>,
}

/// A tool that a skill may use: `Read`, or `Bash(git:*)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTool {
    /// Pattern of tool names.
    pub tool: Pattern,
    /// Text in brackets after the name. Only the tool knows its meaning.
    pub argument_pattern: Option<String>,
}

/// Why a skill is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// Its file cannot be read.
    #[error(transparent)]
    File(#[from] SkillFileError),
    /// The file does not begin with front matter.
    #[error("SKILL.md does not begin with front matter: expected a first line ---")]
    NoFrontMatter,
    /// The front matter is not closed.
    #[error("the front matter has no end: expected a line --- behind it")]
    Unclosed,
    /// The front matter is too large.
    #[error("the front matter has {bytes} bytes, the limit is {limit}")]
    FrontMatterTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The front matter is not YAML, or its fields have wrong types.
    #[error("the front matter cannot be read: {reason}")]
    FrontMatter {
        /// What is wrong, and where.
        reason: String,
    },
    /// A required field is missing.
    #[error("the front matter has no {field}")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// A field is too short or too long.
    #[error("the {field} has {characters} characters, expected 1 to {limit}")]
    Length {
        /// Name of the field.
        field: &'static str,
        /// Number of characters it has.
        characters: usize,
        /// Maximum number of characters.
        limit: usize,
    },
    /// The name is invalid.
    #[error(
        "{name:?} is no name of a skill: expected 1 to 64 of a-z, 0-9 and -, no - at an end and no two together"
    )]
    Name {
        /// The first characters of the name.
        name: String,
    },
    /// The name differs from that of the folder.
    #[error("the skill {name} lies in the folder {folder:?}: both must have one name")]
    Folder {
        /// The skill's name.
        name: String,
        /// Name of the folder.
        folder: String,
    },
    /// The specification does not define these fields.
    #[error("the front matter has fields that the specification does not know: {fields}")]
    UnknownFields {
        /// Names of the fields.
        fields: String,
    },
    /// Two skills have the same name.
    #[error("two skills are named {name}")]
    Twice {
        /// The name that occurs twice.
        name: String,
    },
    /// A limit of loading is reached.
    #[error("there are more than {limit} {what}: the others are not read")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The highest accepted number.
        limit: usize,
    },
}

impl SkillError {
    /// Returns a stable name of the rule that was broken, in lower case, for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File(error) => error.kind(),
            Self::NoFrontMatter => "no_front_matter",
            Self::Unclosed => "unclosed_front_matter",
            Self::FrontMatterTooLarge { .. } => "front_matter_too_large",
            Self::FrontMatter { .. } => "front_matter",
            Self::Missing { .. } => "missing_field",
            Self::Length { .. } => "length",
            Self::Name { .. } => "name",
            Self::Folder { .. } => "folder",
            Self::UnknownFields { .. } => "unknown_fields",
            Self::Twice { .. } => "twice",
            Self::TooMany { .. } => "too_many",
        }
    }
}

impl Skill {
    /// Creates a skill without files.
    ///
    /// # Errors
    /// [`SkillError::Name`] or [`SkillError::Length`].
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        instructions: impl Into<String>,
    ) -> Result<Self, SkillError> {
        let skill = Self {
            name: name.into(),
            description: description.into(),
            license: None,
            compatibility: None,
            metadata: BTreeMap::new(),
            allowed_tools: Vec::new(),
            instructions: instructions.into(),
            folder: None,
        };
        skill.validate_fields()?;
        Ok(skill)
    }

    /// Reads a text file of its folder by its relative path: names joined by `/`. Links are not followed, and files
    /// over 1 MiB are refused. This blocks on the file system.
    ///
    /// # Errors
    /// [`SkillFileError`]: no such file, a path that leaves the folder, not text, or too large.
    pub fn read_file(&self, path: &str) -> Result<String, SkillFileError> {
        let folder = self.folder.as_deref();
        let place =
            folder.and_then(|folder| Some((folder.parent()?, folder.file_name()?.to_str()?)));
        let Some((above, name)) = place else {
            let name = path.chars().take(200).collect();
            return Err(SkillFileError::Missing { name });
        };
        // The folder of skills is trusted, the skill's own is not, so it is opened step by step from above.
        read_below(above, &format!("{name}/{path}"), FILE_BYTES)
    }

    /// Validates the fields by the rules of the specification.
    pub(super) fn validate_fields(&self) -> Result<(), SkillError> {
        check_name(&self.name)?;
        check_length("description", &self.description, DESCRIPTION)?;
        match &self.compatibility {
            Some(text) => check_length("compatibility", text, COMPATIBILITY),
            None => Ok(()),
        }
    }
}

/// Checks that a text is a valid name of a skill, or a valid namespace.
pub(super) fn check_name(name: &str) -> Result<(), SkillError> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let fine = (1..=NAME).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    match fine {
        true => Ok(()),
        false => Err(SkillError::Name {
            name: name.chars().take(80).collect(),
        }),
    }
}

fn check_length(field: &'static str, text: &str, limit: usize) -> Result<(), SkillError> {
    let characters = text.trim().chars().count();
    match (1..=limit).contains(&characters) {
        true => Ok(()),
        false => Err(SkillError::Length {
            field,
            characters,
            limit,
        }),
    }
}

impl AllowedTool {
    /// Parses `Read` or `Bash(git:*)`.
    pub(super) fn parse(text: &str) -> Self {
        let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
        match inner {
            Some((tool, within)) => Self {
                tool: Pattern::new(tool),
                argument_pattern: Some(within.to_owned()),
            },
            None => Self {
                tool: Pattern::new(text),
                argument_pattern: None,
            },
        }
    }

    /// Parses several tools, separated by spaces or commas outside brackets: `Bash(git add:*), Read`.
    pub(super) fn parse_all(text: &str) -> Vec<Self> {
        let mut open = 0_usize;
        let apart = |c: char| {
            match c {
                '(' => open += 1,
                ')' => open = open.saturating_sub(1),
                _ => {}
            }
            open == 0 && (c.is_whitespace() || c == ',')
        };
        let words = text.split(apart).filter(|word| !word.is_empty());
        words.map(Self::parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        let longest = "a".repeat(64);
        for name in [
            "pdf-processing",
            "data-analysis",
            "a",
            "1",
            "a1-2b",
            &longest,
        ] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let longer = "a".repeat(65);
        for name in [
            "",
            "-",
            "-pdf",
            "pdf-",
            "pdf--processing",
            "PDF-Processing",
            "a_b",
            "a b",
            "a.b",
            "a/b",
            "..",
            "é",
            "技能",
            "a\n",
            "a\u{0}",
            "ns:a",
            &longer,
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn descriptions_have_1_to_1024_characters() {
        for (characters, fine) in [(0, false), (1, true), (1024, true), (1025, false)] {
            let skill = Skill::new("a", "é".repeat(characters), "");
            assert_eq!(skill.is_ok(), fine, "{characters}");
        }
        let error = Skill::new("a", "  \n", "").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the description has 0 characters, expected 1 to 1024"
        );
    }

    #[test]
    fn tools_stand_apart_by_spaces_or_commas_outside_brackets() {
        let read = |text| {
            let tools = AllowedTool::parse_all(text);
            let tools = tools.iter().map(|tool| match &tool.argument_pattern {
                Some(within) => format!("{}<{within}>", tool.tool),
                None => tool.tool.to_string(),
            });
            tools.collect::<Vec<_>>().join("|")
        };
        assert_eq!(
            read("Bash(git:*) Bash(jq:*) Read"),
            "Bash<git:*>|Bash<jq:*>|Read"
        );
        assert_eq!(read("Read, Write,Grep"), "Read|Write|Grep");
        assert_eq!(read("Bash(git add:*, x)  Read"), "Bash<git add:*, x>|Read");
        assert_eq!(read("Bash(a(b) c) d"), "Bash<a(b) c>|d");
        assert_eq!(read(" , "), "");
        assert_eq!(read("Bash(git"), "Bash(git");
        assert_eq!(read(")("), ")(");
    }
}
