//! Skills: instructions in folders, and their files.

use std::collections::BTreeMap;

use contexture::layers::builtin::{AllowedTool, Skill};
use serde::Serialize;
use utoipa::ToSchema;

/// A skill.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkillDocument {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Its folder, for those whose machine it lies on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Under what licence, or where that is written.
    pub license: Option<String>,
    /// What it needs of its surroundings.
    pub compatibility: Option<String>,
    /// What else it says of itself.
    pub metadata: BTreeMap<String, String>,
    /// The tools it may use without a person being asked: `Read`, `Bash(git:*)`.
    pub allowed_tools: Vec<String>,
    /// What to do, as Markdown; where one skill is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl SkillDocument {
    /// A skill in a list: without instructions and path.
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

    /// The same with its instructions.
    #[must_use]
    pub fn with_instructions(skill: &Skill) -> Self {
        Self {
            instructions: Some(skill.instructions.clone()),
            ..Self::without_instructions(skill)
        }
    }

    /// The same with its folder.
    #[must_use]
    pub fn with_folder(self, skill: &Skill) -> Self {
        let folder = skill.folder.as_ref();
        Self {
            path: folder.map(|folder| folder.display().to_string()),
            ..self
        }
    }
}

/// `Read`, `Bash(git:*)`.
fn format_allowed_tool(tool: &AllowedTool) -> String {
    match &tool.argument_pattern {
        Some(within) => format!("{}({within})", tool.tool),
        None => tool.tool.to_string(),
    }
}

/// Skills, in the order of their folders.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkillsDocument {
    /// The skills, without instructions.
    pub skills: Vec<SkillDocument>,
}

/// A file of a skill.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkillFileDocument {
    /// The skill.
    pub skill: String,
    /// The file, in the skill's folder.
    pub path: String,
    /// What it says.
    pub text: String,
}
