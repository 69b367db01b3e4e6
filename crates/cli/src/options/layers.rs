//! Layers that stand beside a stored conversation: options of `compile` and `explain`.
//!
//! Not here: changing what they keep, which is `contexture memory`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use contexture::layers::builtin::{Memory, Skills, UnknownFields};
use contexture::layers::{Layers, StateScope};

use crate::options::globals::Globals;
use crate::output::failure::Outcome;
use crate::output::shell_command::option_with_value;
use crate::output::write;
use crate::skill_folders;

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
    memory: Option<NoteScope>,
}

/// What notes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoteScope {
    /// The conversation's resource, or the conversation if it has none: rewinding does not touch them.
    Resource,
    /// The owner: they are the same in all conversations.
    Owner,
    /// The path: they rewind with it.
    Path,
}

impl NoteScope {
    /// The layer that keeps them.
    pub(crate) fn memory_layer(self) -> Memory {
        Memory::new().with_scope(match self {
            Self::Resource => StateScope::Resource,
            Self::Owner => StateScope::Global,
            Self::Path => StateScope::Path,
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
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let Self { skills, memory } = self;
        let skills = skills
            .iter()
            .map(|path| option_with_value("--skills", path.display()));
        let memory = memory.map(|keeper| match keeper {
            NoteScope::Resource => "--memory".to_owned(),
            NoteScope::Owner => "--memory=owner".to_owned(),
            NoteScope::Path => "--memory=path".to_owned(),
        });
        skills.flatten().chain(memory).collect()
    }

    /// What notes belong to, if there are any.
    pub(crate) const fn note_scope(&self) -> Option<NoteScope> {
        self.memory
    }

    /// The layers. What is no skill is told, and left out.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(crate) fn build_layers(&self, globals: &Globals) -> Outcome<Layers> {
        let mut layers = Layers::new();
        if let Some(keeper) = self.memory {
            layers = layers.with_layer(keeper.memory_layer())?;
        }
        if !self.skills.is_empty() {
            let found = skill_folders::scan_skills(&self.skills, UnknownFields::Note)?;
            if !globals.quiet {
                found.problems.iter().for_each(|problem| {
                    write::print_warning(&problem.to_string());
                });
            }
            // Whatever a skill allows by itself, what the policy leaves to a person stays with one.
            layers = layers.with_layer(Skills::new(found.skills)?.without_approvals())?;
        }
        Ok(layers)
    }
}
