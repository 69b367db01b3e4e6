//! Loads skills from folders: each `<folder>/<name>/SKILL.md`, one level deep.
//!
//! A skill that cannot be read does not prevent others from loading: it is listed with its error. All functions here
//! block on the file system.
//!
//! Not here: parsing a file ([`super::front_matter`]), and opening it ([`super::files`]).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::{SkillFileError, read_below};
use super::front_matter;
use super::skill::{Skill, SkillError, check_name};

/// Maximum size of a `SKILL.md`, in bytes.
const BYTES: u64 = 1 << 20;
/// Maximum number of skills.
const SKILLS: usize = 1_000;
/// Total size of instructions at which loading stops, in bytes; the last skill may exceed it.
const ALL_BYTES: usize = 32 << 20;
/// Maximum number of entries of a folder that are examined.
const ENTRIES: usize = 10_000;

/// Folders that hold skills.
///
/// ```
/// use contexture_layers::builtin::{SkillFolders, Skills};
///
/// # let dir = tempfile::tempdir()?;
/// # let project = dir.path().join("project");
/// # let home = dir.path().join("home");
/// std::fs::create_dir_all(project.join("greeting"))?;
/// let text = "---\nname: greeting\ndescription: How to greet. Use when somebody arrives.\n---\nSay hello.\n";
/// std::fs::write(project.join("greeting/SKILL.md"), text)?;
///
/// let loaded = SkillFolders::new().with_folder(&project).with_folder(&home).load_skills();
/// assert_eq!(loaded.skills[0].name, "greeting");
/// assert_eq!(loaded.refused[0].path, home); // it is not there
/// let layer = Skills::new(loaded.skills)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SkillFolders {
    folders: Vec<(PathBuf, Option<String>)>,
    precedence: Precedence,
    unknown_fields: UnknownFields,
}

/// Which of two skills with one name is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precedence {
    /// The skill of the earlier folder.
    #[default]
    FirstWins,
    /// The skill of the later folder.
    LastWins,
}

/// How to treat fields that the specification does not define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// They are listed and ignored.
    #[default]
    Note,
    /// The skill is refused, as the specification's own checker does.
    Refuse,
}

/// Result of loading skills from folders.
#[derive(Debug, Default)]
pub struct LoadedSkills {
    /// The skills, in the order in which their names were first found: folder by folder, by name.
    pub skills: Vec<Skill>,
    /// Folders that are not skills, with the reasons.
    pub refused: Vec<RefusedSkill>,
    /// Skills that are hidden by another one of the same name, with their folders.
    pub shadowed: Vec<(String, PathBuf)>,
    /// Unknown fields, with the folders of their skills.
    pub unknown_fields: Vec<(PathBuf, Vec<String>)>,
}

/// A folder that could not be loaded as a skill.
#[derive(Debug)]
pub struct RefusedSkill {
    /// Path of its folder.
    pub path: PathBuf,
    /// Why it was refused.
    pub error: SkillError,
}

impl SkillFolders {
    /// Creates a list without folders.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder of skills.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push((folder.into(), None));
        self
    }

    /// Adds a folder whose skills are named `namespace:name`.
    #[must_use]
    pub fn with_namespace(mut self, folder: impl Into<PathBuf>, namespace: &str) -> Self {
        self.folders
            .push((folder.into(), Some(namespace.to_owned())));
        self
    }

    /// Sets which of two skills with one name is used. Default: that of the earlier folder.
    #[must_use]
    pub const fn with_precedence(mut self, precedence: Precedence) -> Self {
        self.precedence = precedence;
        self
    }

    /// Sets how unknown fields are treated. Default: they are listed.
    #[must_use]
    pub const fn with_unknown_fields(mut self, unknown: UnknownFields) -> Self {
        self.unknown_fields = unknown;
        self
    }

    /// Loads the skills. A folder that is listed twice, by whatever path, is read once.
    #[must_use]
    pub fn load_skills(&self) -> LoadedSkills {
        let mut loaded = LoadedSkills::default();
        let mut seen = BTreeSet::new();
        for (folder, namespace) in &self.folders {
            // By its real path, so that a link or `..` does not make every skill its own duplicate.
            let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
            if !seen.insert((real, namespace)) {
                continue;
            }
            // A namespace becomes part of the skills' names, so the same rule applies to it.
            let named = namespace.as_deref().map_or(Ok(()), check_name);
            let names = named.and_then(|()| self.folder_names(folder, &mut loaded));
            let names = match names {
                Ok(names) => names,
                Err(error) => {
                    loaded.add_refused(folder.clone(), error);
                    continue;
                }
            };
            for name in names {
                // Checked before each skill, so that loading stops at the limits.
                if let Err(error) = loaded.check_limits() {
                    loaded.add_refused(folder.join(name), error);
                    return loaded;
                }
                match self.read_skill(folder, &name, &mut loaded) {
                    Ok(None) => {}
                    Ok(Some(skill)) => {
                        self.add_skill(skill, namespace.as_deref(), &mut loaded);
                    }
                    Err(error) => loaded.add_refused(folder.join(name), error),
                }
            }
        }
        loaded
    }

    /// Returns the names of a folder's subfolders, sorted. Links are listed as refused, because they may lead anywhere.
    fn folder_names(
        &self,
        folder: &Path,
        loaded: &mut LoadedSkills,
    ) -> Result<Vec<String>, SkillError> {
        let unreadable = |error: std::io::Error| SkillFileError::Unreadable {
            name: folder.display().to_string(),
            reason: error.to_string(),
        };
        let mut names = Vec::new();
        for (count, entry) in fs::read_dir(folder).map_err(unreadable)?.enumerate() {
            // The listing itself is bounded as well: a folder may contain millions of files that are not skills.
            if count == ENTRIES {
                let what = "entries";
                let limit = ENTRIES;
                loaded.add_refused(folder.to_owned(), SkillError::TooMany { what, limit });
                break;
            }
            let entry = entry.map_err(unreadable)?;
            // The type of the entry itself: a link is seen as a link and not as its target.
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_symlink() {
                let error = SkillFileError::Kind {
                    name: entry.file_name().display().to_string(),
                    found: "a symbolic link, which is not followed",
                    expected: "a folder",
                };
                loaded.add_refused(entry.path(), error.into());
            } else if kind.is_dir() {
                match entry.file_name().into_string() {
                    Ok(name) => names.push(name),
                    Err(name) => {
                        let name = name.display().to_string();
                        loaded.add_refused(entry.path(), SkillError::Name { name });
                    }
                }
            }
        }
        // The order of a directory depends on the file system; the list in the prompt must not.
        names.sort_unstable();
        Ok(names)
    }

    /// Reads the skill in a folder of this name; `None` if the folder contains none.
    fn read_skill(
        &self,
        folder: &Path,
        name: &str,
        loaded: &mut LoadedSkills,
    ) -> Result<Option<Skill>, SkillError> {
        let place = folder.join(name);
        // The folder of skills is trusted, a skill's own folder is not: its files are opened step by step from above,
        // so that no link leads out of it.
        let read = |file: &str| read_below(folder, &format!("{name}/{file}"), BYTES);
        let text = match read("SKILL.md") {
            // Some file systems ignore case, so files exist in both spellings.
            Err(SkillFileError::Missing { .. }) => read("skill.md"),
            text => text,
        };
        let text = match text {
            // A folder without either file is not a skill, which is no error.
            Err(SkillFileError::Missing { .. }) => return Ok(None),
            text => text?,
        };
        let front_matter::ParsedSkillFile { mut skill, unknown } =
            front_matter::parse_skill_file(&text)?;
        // The specification requires it, and it makes names within one folder unique.
        if skill.name != name {
            return Err(SkillError::Folder {
                name: skill.name,
                folder: name.to_owned(),
            });
        }
        if !unknown.is_empty() {
            if self.unknown_fields == UnknownFields::Refuse {
                let fields = unknown.join(", ");
                return Err(SkillError::UnknownFields { fields });
            }
            loaded.unknown_fields.push((place.clone(), unknown));
        }
        skill.folder = Some(place);
        Ok(Some(skill))
    }

    fn add_skill(&self, mut skill: Skill, namespace: Option<&str>, loaded: &mut LoadedSkills) {
        if let Some(namespace) = namespace {
            skill.name = format!("{namespace}:{}", skill.name);
        }
        let other = loaded
            .skills
            .iter_mut()
            .find(|other| other.name == skill.name);
        // Replaced in place: the list keeps the order in which names were first found.
        let lost = match other {
            None => {
                loaded.skills.push(skill);
                return;
            }
            Some(other) if self.precedence == Precedence::LastWins => {
                std::mem::replace(other, skill)
            }
            Some(_) => skill,
        };
        let place = lost.folder.unwrap_or_default();
        loaded.shadowed.push((lost.name, place));
    }
}

impl LoadedSkills {
    fn check_limits(&self) -> Result<(), SkillError> {
        let bytes: usize = self
            .skills
            .iter()
            .map(|skill| skill.instructions.len())
            .sum();
        // The limits are reached, so another skill would exceed them.
        let full = [
            ("skills", self.skills.len(), SKILLS),
            ("bytes of skills", bytes, ALL_BYTES),
        ];
        match full.into_iter().find(|(_, has, limit)| has >= limit) {
            None => Ok(()),
            Some((what, _, limit)) => Err(SkillError::TooMany { what, limit }),
        }
    }

    fn add_refused(&mut self, path: PathBuf, error: SkillError) {
        self.refused.push(RefusedSkill { path, error });
    }
}
