//! Skills: instructions in files that a model reads when it needs them, following the `SKILL.md` specification.
//!
//! In every call the model sees names and descriptions. It reads a skill with `load_skill` and files beside it with
//! `read_skill_file`. What it loads is a tool output: it follows the call, changes no earlier byte, and is cleared or
//! compacted like any output (the model can load it again). A program activates a skill with the function
//! `skills_activate`: its instructions then precede the history until `skills_deactivate`. The active skills are state
//! of the path, so a rewind restores them. A child run starts with those that a program activated.
//!
//! Tools that an active skill allows run without approval where the policy would ask for one; tools that the policy
//! denies stay denied ([`Skills::allowed_tools`]; [`Skills::without_approvals`]). With
//! [`Skills::with_tool_restriction`] all other tools are denied while such a skill is active.
//!
//! Not here: running scripts of skills; asking a person about a tool.

mod files;
mod front_matter;
mod functions;
mod load;
mod skill;
mod substitute;

pub use files::SkillFileError;
pub use load::{LoadedSkills, Precedence, RefusedSkill, SkillFolders, UnknownFields};
pub use skill::{AllowedTool, Skill, SkillError};

use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::reading::{TextPosition, extract_excerpt};
use contexture_compile::{Band, Budget, Contribution, Stability};
use contexture_ir::{Fragment, Raw, hint, object};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::function_args::{encode_result, parse_arguments, unknown_function};
use crate::contract::{
    FunctionError, FunctionSpec, HookContext, Layer, LayerError, LayerId, LayerSpec, RecallInput,
    ToolGate, ToolRequest,
};
use functions::{LINES, LOAD, READ, skill_functions};
use substitute::substitute_arguments;

/// Maximum number of characters of a file in one answer.
const CHARACTERS: usize = 50_000;
/// Maximum number of active skills.
const ACTIVE: usize = 20;

/// Skills as a layer, named `skills`.
///
/// The list is in the system prompt within 4,000 tokens; the last skills are left out first. Limits: 1,000 skills from
/// folders; files of 1 MiB, returned in parts of up to 500 lines and 50,000 characters; 20 active skills, of which the
/// oldest that the model loaded are deactivated first.
///
/// ```
/// use contexture_ir::{BranchName, ConversationId, Owner, Raw};
/// use contexture_layers::builtin::{Skill, Skills};
/// use contexture_layers::{HookContext, Layers};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let greet = Skill::new("greet", "How to greet. Use when somebody arrives.", "Greet $0 by name.")?;
/// let layers = Layers::new().with_layer(Skills::new([greet])?)?;
/// let context = HookContext::new(Owner::new("ada")?, ConversationId::new("c")?, BranchName::main());
/// let mut states = layers.restore_states([]);
/// layers.init_states(&mut states, &context).await?;
///
/// let arguments = Raw::parse(r#"{"name":"greet","arguments":"Grace"}"#)?;
/// let text = layers.call_function(&mut states, "load_skill", &arguments, &context).await?;
/// assert_eq!(text.get(), r#""Greet Grace by name.""#);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Skills {
    id: LayerId,
    skills: Arc<[Skill]>,
    listing_budget: Budget,
    is_restricting: bool,
    is_approving: bool,
}

/// Where the instructions of active skills stand in the system prompt: behind the host's own (10), before memory (200).
const ACTIVE_ORDER: i32 = 150;

/// State of [`Skills`]: the active skills, in the order of activation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsState {
    /// Active skills, oldest first.
    pub active: Vec<ActiveSkill>,
}

/// A skill that is active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSkill {
    /// Name of the skill.
    pub name: String,
    /// Who activated it, which determines where its instructions are.
    #[serde(rename = "by")]
    pub activated_by: ActivatedBy,
    /// The arguments it was activated with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

/// Who activated a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivatedBy {
    /// The model, by its tool: the instructions are that tool's output.
    Model,
    /// A program: the instructions stand in the system prompt, before memory.
    Program,
}

#[derive(Deserialize)]
struct SkillArguments {
    name: String,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct ReadFileArguments {
    name: String,
    path: String,
    line: Option<u64>,
    column: Option<u64>,
    lines: Option<u64>,
}

impl Skills {
    /// Creates a layer that offers these skills.
    ///
    /// # Errors
    /// [`SkillError::Twice`] if two skills have the same name.
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Result<Self, SkillError> {
        let skills: Arc<[Skill]> = skills.into_iter().collect();
        for (at, skill) in skills.iter().enumerate() {
            // Refused, not overridden: which of the two a model gets must not depend on their order here.
            if skills.iter().take(at).any(|other| other.name == skill.name) {
                let name = skill.name.clone();
                return Err(SkillError::Twice { name });
            }
        }
        Ok(Self {
            id: LayerId::built_in("skills"),
            skills,
            listing_budget: Budget::at_most(4_000),
            is_restricting: false,
            is_approving: true,
        })
    }

    /// Sets the maximum size of the list of skills, in tokens. Default: 4,000.
    #[must_use]
    pub const fn listing_at_most(mut self, tokens: u64) -> Self {
        self.listing_budget = Budget::at_most(tokens);
        self
    }

    /// Denies tools that no active skill allows, as soon as an active skill lists any. A tool that is allowed only for
    /// certain arguments (in brackets) needs approval.
    #[must_use]
    pub const fn with_tool_restriction(mut self) -> Self {
        self.is_restricting = true;
        self
    }

    /// Leaves approvals to a person where the policy asks for them, whatever skills allow.
    #[must_use]
    pub const fn without_approvals(mut self) -> Self {
        self.is_approving = false;
        self
    }

    /// Returns the skills, in the order of the list.
    #[must_use]
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the tools that the active skills allow without approval, each with its skill.
    pub fn allowed_tools<'a>(
        &'a self,
        state: &'a SkillsState,
    ) -> impl Iterator<Item = (&'a Skill, &'a AllowedTool)> {
        let active = state
            .active
            .iter()
            .filter_map(|active| self.find_skill(&active.name));
        active.flat_map(|skill| skill.allowed_tools.iter().map(move |tool| (skill, tool)))
    }

    fn find_skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    fn require_skill(&self, name: &str) -> Result<&Skill, FunctionError> {
        self.find_skill(name).ok_or_else(|| {
            let there: Vec<&str> = self.skills.iter().map(|skill| &*skill.name).collect();
            // At most fifty names: the text goes to the model, and there may be a thousand skills.
            let shown = there.get(..50).unwrap_or(&there).join(", ");
            FunctionError::Refused(format!("there is no skill {name:?}; there are: {shown}"))
        })
    }

    /// Activates a skill and returns its instructions.
    fn activate_skill(
        &self,
        state: &mut SkillsState,
        named: SkillArguments,
        by: ActivatedBy,
    ) -> Result<String, FunctionError> {
        let skill = self.require_skill(&named.name)?;
        let text = render_instructions(skill, named.arguments.as_deref());
        // A skill that a program activated stays before the history, also if the model loads it again.
        let by = match state.active.iter().find(|other| other.name == named.name) {
            Some(other) if by == ActivatedBy::Model => other.activated_by,
            _ => by,
        };
        state.active.retain(|other| other.name != named.name);
        if state.active.len() >= ACTIVE {
            // The model cannot deactivate skills, so the oldest one it loaded is deactivated. A program's never is.
            let oldest = state
                .active
                .iter()
                .position(|other| other.activated_by == ActivatedBy::Model);
            let Some(oldest) = oldest else {
                let reason = format!("{ACTIVE} skills are active already, which is the most");
                return Err(FunctionError::Refused(reason));
            };
            state.active.remove(oldest);
        }
        state.active.push(ActiveSkill {
            name: named.name,
            activated_by: by,
            arguments: named.arguments,
        });
        Ok(text)
    }

    async fn read_file(&self, asked: ReadFileArguments) -> Result<Raw, FunctionError> {
        let skill = self.require_skill(&asked.name)?.clone();
        if skill.folder.is_none() {
            let reason = format!("the skill {} has no files", skill.name);
            return Err(FunctionError::Refused(reason));
        }
        // Read on the blocking pool: a slow disk would stall every run of the process.
        let reading = tokio::task::spawn_blocking(move || skill.read_file(&asked.path));
        let text = reading.await.map_err(LayerError::from_message)?;
        let text = text.map_err(|error| FunctionError::Refused(error.to_string()))?;
        let from = TextPosition {
            column: asked.column.unwrap_or(0),
            ..TextPosition::line_start(asked.line.unwrap_or(1))
        };
        // Limited here too, so that the size of an answer does not depend on the schema alone.
        let lines = asked.lines.unwrap_or(LINES).min(LINES);
        let part = extract_excerpt(&text, from, lines, CHARACTERS);
        let next = part
            .next
            .map(|at| json!({"line": at.line, "column": at.column}));
        encode_result(&json!({"text": part.text, "lines": part.lines, "next": next}))
    }
}

fn render_instructions(skill: &Skill, arguments: Option<&str>) -> String {
    match arguments {
        Some(arguments) => substitute_arguments(&skill.instructions, arguments),
        None => skill.instructions.clone(),
    }
}

#[async_trait]
impl Layer for Skills {
    type State = SkillsState;

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            budget: self.listing_budget,
            ..LayerSpec::new(self.id.clone()).with_position(Band::System, 300, Stability::Epoch)
        }
    }

    async fn recall(
        &self,
        state: &SkillsState,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let mut said = Vec::new();
        if !self.skills.is_empty() {
            let about = format!(
                "Skills are instructions for certain tasks. Before a task that one is for, read it with {LOAD}."
            );
            let listed = self.skills.iter().map(|skill| {
                let entries = [("name", &skill.name), ("description", &skill.description)];
                Fragment::new(
                    "skill",
                    object(entries.map(|(key, text)| (key, text.as_str()))),
                )
            });
            said.push(call.contribution_from_fragments([hint(about)].into_iter().chain(listed)));
        }
        // Skills that the model loaded are in the history as outputs of its calls; only a program's skills are added
        // here.
        for active in &state.active {
            let skill = self.find_skill(&active.name);
            let Some(skill) = skill.filter(|_| active.activated_by == ActivatedBy::Program) else {
                continue;
            };
            let text = render_instructions(skill, active.arguments.as_deref());
            let entries = [("name", skill.name.clone()), ("instructions", text)];
            said.push(Contribution {
                source: format!("{}/{}", self.id, skill.name),
                // Between the system prompt and memory: what is remembered is read in the light of the task at hand.
                band: Band::System,
                order: ACTIVE_ORDER,
                // With a maximum it may be left out; a request is not refused for a long skill.
                budget: Budget::at_most(u64::MAX),
                ..call.contribution_from_fragments([Fragment::new("active_skill", object(entries))])
            });
        }
        Ok(said)
    }

    async fn before_tool(
        &self,
        state: &mut SkillsState,
        call: &ToolRequest,
        _: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        // Without any listed tool there is no restriction. The skill functions themselves are never restricted: a model
        // that cannot load a skill could not get out of a restriction.
        let mut allowed = self.allowed_tools(state).peekable();
        if allowed.peek().is_none() || [LOAD, READ].contains(&&*call.tool) {
            return Ok(ToolGate::Allow);
        }
        let tool = call.tool_id();
        let mut gate = None;
        for (skill, allows) in allowed.filter(|(_, allows)| allows.tool.matches(&tool)) {
            // One unconditional permission is enough, whichever skill gives it.
            let Some(within) = &allows.argument_pattern else {
                return Ok(match self.is_approving {
                    true => ToolGate::Approve,
                    false => ToolGate::Allow,
                });
            };
            let reason = format!(
                "the skill {} allows {} for {within} only",
                skill.name, call.tool
            );
            // The text in brackets is meant for people ("git status only"); code cannot check it, so a person decides.
            gate.get_or_insert(ToolGate::Ask(reason));
        }
        if !self.is_restricting {
            return Ok(ToolGate::Allow);
        }
        Ok(gate.unwrap_or_else(|| {
            let active: Vec<&str> = state.active.iter().map(|active| &*active.name).collect();
            let active = active.join(", ");
            ToolGate::Deny(format!(
                "the active skills ({active}) do not allow {}",
                call.tool
            ))
        }))
    }

    async fn on_spawn(
        &self,
        parent: &SkillsState,
        _: &HookContext,
    ) -> Result<Option<SkillsState>, LayerError> {
        // What the parent's model loaded is an output in the parent's history, which the child does not see.
        let mut child = parent.clone();
        child
            .active
            .retain(|active| active.activated_by == ActivatedBy::Program);
        Ok(Some(child))
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        match self.skills.is_empty() {
            true => Vec::new(),
            false => skill_functions(&self.id),
        }
    }

    async fn call_function(
        &self,
        state: &mut SkillsState,
        function: &str,
        arguments: &Raw,
        _: &HookContext,
    ) -> Result<Raw, FunctionError> {
        match function {
            "load" => {
                let text =
                    self.activate_skill(state, parse_arguments(arguments)?, ActivatedBy::Model)?;
                Ok(Raw::string(&text))
            }
            "read_file" => self.read_file(parse_arguments(arguments)?).await,
            "activate" => {
                self.activate_skill(state, parse_arguments(arguments)?, ActivatedBy::Program)?;
                // A program gets no text: the next call contains the instructions.
                Ok(Raw::null())
            }
            "deactivate" => {
                let SkillArguments { name, .. } = parse_arguments(arguments)?;
                state.active.retain(|active| active.name != name);
                Ok(Raw::null())
            }
            _ => Err(unknown_function(&self.id, function)),
        }
    }
}
