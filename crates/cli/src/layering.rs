//! Layers that stand beside a stored conversation: options of `compile` and `explain`.
//!
//! Not here: changing what they keep, which is `contexture memory`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use contexture::layers::builtin::{Memory, Skills, UnknownFields};
use contexture::layers::{Layers, Scope};

use crate::again::option;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::{say, skill_folders};

/// The options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LayerArguments {
    /// Offer a stored conversation the skills in this folder; may be repeated, the earlier counts
    #[arg(long, value_name = "FOLDER")]
    skills: Vec<PathBuf>,
    /// Show a stored conversation its notes, as `contexture memory` lists them
    #[arg(
        long,
        value_enum,
        value_name = "SCOPE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "resource"
    )]
    memory: Option<Keeper>,
}

/// What notes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keeper {
    /// The conversation's resource, or the conversation if it has none: rewinding does not touch them.
    Resource,
    /// The owner: they are the same in all conversations.
    Owner,
    /// The path: they rewind with it.
    Path,
}

impl Keeper {
    /// The layer that keeps them.
    pub(crate) fn memory(self) -> Memory {
        Memory::new().scoped(match self {
            Self::Resource => Scope::Resource,
            Self::Owner => Scope::Global,
            Self::Path => Scope::Path,
        })
    }
}

impl LayerArguments {
    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.memory.is_none()
    }

    /// The folders of skills.
    pub(crate) fn skill_folders(&self) -> &[PathBuf] {
        &self.skills
    }

    /// The options, to be typed again.
    pub(crate) fn words(&self) -> Vec<String> {
        let Self { skills, memory } = self;
        let skills = skills.iter().map(|path| option("--skills", path.display()));
        let memory = memory.map(|keeper| match keeper {
            Keeper::Resource => "--memory".to_owned(),
            Keeper::Owner => "--memory=owner".to_owned(),
            Keeper::Path => "--memory=path".to_owned(),
        });
        skills.flatten().chain(memory).collect()
    }

    /// What notes belong to, if there are any.
    pub(crate) const fn keeper(&self) -> Option<Keeper> {
        self.memory
    }

    /// The layers. What is no skill is told, and left out.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(crate) fn layers(&self, globals: &Globals) -> Outcome<Layers> {
        let mut layers = Layers::new();
        if let Some(keeper) = self.memory {
            layers = layers.with(keeper.memory())?;
        }
        if !self.skills.is_empty() {
            let found = skill_folders::read(&self.skills, UnknownFields::Note)?;
            if !globals.quiet {
                found.problems.iter().for_each(|problem| {
                    say::warning(&problem.to_string());
                });
            }
            layers = layers.with(Skills::new(found.skills)?.without_approvals())?;
        }
        Ok(layers)
    }
}
