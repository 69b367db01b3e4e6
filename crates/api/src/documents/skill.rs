//! Skills: instructions in folders, and their files.

use std::collections::BTreeMap;

use contexture::layers::builtin::{AllowedTool, Skill};
use serde::Serialize;
use utoipa::ToSchema;

/// A skill: instructions that a model can load when it needs them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkillDocument {
    /// Name of the skill; `namespace:name` if its folder has a namespace.
    pub name: String,
    /// Description of the skill: what it does and when to use it.
    pub description: String,
    /// Path of its folder; absent over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Licence of the skill, or where to find it; `null` if none is given.
    pub license: Option<String>,
    /// Requirements on its environment; `null` if none are given.
    pub compatibility: Option<String>,
    /// Other metadata of the skill, by key.
    pub metadata: BTreeMap<String, String>,
    /// Tools that it may use without asking a person, such as `Read` or `Bash(git:*)`.
    pub allowed_tools: Vec<String>,
    /// Instructions as Markdown; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl SkillDocument {
    /// Creates the document of a skill in a list, without instructions and path.
    #[must_use]
    pub fn without_instructions(skill: &Skill) -> Self {
        Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            // A folder of the server's machine means nothing to callers over HTTP.
            path: None,
            license: skill.license.clone(),
            compatibility: skill.compatibility.clone(),
            metadata: skill.metadata.clone(),
            allowed_tools: skill
                .allowed_tools
                .iter()
                .map(format_allowed_tool)
                .collect(),
            // Long texts: fetched one by one.
            instructions: None,
        }
    }

    /// Creates the document of a skill with its instructions, without its path.
    #[must_use]
    pub fn with_instructions(skill: &Skill) -> Self {
        Self {
            instructions: Some(skill.instructions.clone()),
            ..Self::without_instructions(skill)
        }
    }

    /// Returns the same document with the path of the skill's folder.
    #[must_use]
    pub fn with_folder(self, skill: &Skill) -> Self {
        let folder = skill.folder.as_ref();
        Self {
            path: folder.map(|folder| folder.display().to_string()),
            ..self
        }
    }
}

/// Formats an allowed tool as in `Read` or `Bash(git:*)`.
fn format_allowed_tool(tool: &AllowedTool) -> String {
    match &tool.argument_pattern {
        Some(within) => format!("{}({within})", tool.tool),
        None => tool.tool.to_string(),
    }
}

/// All skills, in the order of their folders.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkillsDocument {
    /// The skills, without instructions.
    pub skills: Vec<SkillDocument>,
}

/// A text file of a skill.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkillFileDocument {
    /// Name of the skill.
    pub skill: String,
    /// Path of the file in the skill's folder.
    pub path: String,
    /// Content of the file.
    pub text: String,
}
