//! Folders of skills: what is in them, and what is wrong with it.

use std::fmt;
use std::path::{Path, PathBuf};

use contexture::layers::builtin::{LoadedSkills, Skill, SkillFolders, UnknownFields};
use serde::Serialize;

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// What was found.
#[derive(Debug)]
pub(crate) struct ScannedSkills {
    pub(crate) skills: Vec<Skill>,
    /// By their paths.
    pub(crate) problems: Vec<SkillProblem>,
}

/// What is wrong with a skill, or is none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct SkillProblem {
    /// The skill's folder.
    pub(crate) path: String,
    /// A stable word for programs.
    pub(crate) rule: &'static str,
    pub(crate) message: String,
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path, self.message)
    }
}

/// Reads folders, each of which holds the folders of skills.
///
/// # Errors
/// One is no folder, or is a skill itself.
pub(crate) fn scan_skills(folders: &[PathBuf], unknown: UnknownFields) -> Outcome<ScannedSkills> {
    let mut all = SkillFolders::new().with_unknown_fields(unknown);
    for folder in folders {
        check_skills_folder(folder)?;
        all = all.with_folder(folder);
    }
    let loaded = all.load_skills();
    Ok(ScannedSkills {
        problems: list_problems(&loaded),
        skills: loaded.skills,
    })
}

/// Checks that a folder can hold folders of skills.
fn check_skills_folder(folder: &Path) -> Outcome<()> {
    let shown = folder.display();
    if !folder.is_dir() {
        let message = format!("`{shown}`: no such folder");
        return Err(Failure::new(Exit::NotFound, "no_such_folder", message)
            .with_hint("name a folder that holds skills: FOLDER/NAME/SKILL.md"));
    }
    // A likely slip: such a folder holds no folders of skills, and nothing would be found.
    if folder.join("SKILL.md").exists() {
        let message = format!("`{shown}` is a skill, expected a folder that holds skills");
        return Err(Failure::usage(message).with_hint(format!(
            "name the folder above it: `{}`",
            parent_folder(folder).display()
        )));
    }
    Ok(())
}

/// What is wrong with each skill, by path.
fn list_problems(loaded: &LoadedSkills) -> Vec<SkillProblem> {
    let problem = |path: &Path, rule, message| SkillProblem {
        path: path.display().to_string(),
        rule,
        message,
    };
    let refused = loaded.refused.iter().map(|refused| {
        let error = &refused.error;
        problem(&refused.path, error.kind(), error.to_string())
    });
    let shadowed = loaded.shadowed.iter().map(|(name, path)| {
        let message = format!("the skill {name} does not count: an earlier folder has another");
        problem(path, "shadowed", message)
    });
    let unknown = loaded.unknown_fields.iter().map(|(path, fields)| {
        let message = format!(
            "fields that the specification does not know do nothing: {}",
            fields.join(", ")
        );
        problem(path, "unknown_fields", message)
    });
    let mut problems: Vec<SkillProblem> = refused.chain(shadowed).chain(unknown).collect();
    // By path, so that what is wrong with one skill stands together.
    problems.sort();
    problems
}

/// The folder above one.
fn parent_folder(folder: &Path) -> PathBuf {
    match (folder.file_name(), folder.parent()) {
        // A bare name has an empty parent, which nobody could type.
        (Some(_), Some(above)) if above.as_os_str().is_empty() => ".".into(),
        (Some(_), Some(above)) => above.to_owned(),
        _ => folder.join(".."),
    }
}
