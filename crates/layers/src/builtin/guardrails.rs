//! Guardrails: answers held against rules before they count, and calls of tools before they run.
//!
//! A [`Guard`] looks at an answer and lets it pass, mends it, wants it again with a word of feedback, or ends the run.
//! A [`ToolRule`] says of tools by pattern whether they run, whether a person is asked, what the model is told. They keep
//! no state, and they do not fail open: if one breaks, the operation fails and the tool does not run.
//!
//! Not here: asking again ([`Guardrails::max_retries`] is for whoever does), and what a payload may hold
//! (`contexture-compile`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_ir::{FunctionCall, Item, Part, Raw, Role, ToolDefinition};
use contexture_tools::{Checker, Pattern, SchemaError};
use regex::Regex;

use crate::context::HookContext;
use crate::decision::{Gate, ToolRequest, Verdict};
use crate::error::LayerError;
use crate::id::LayerId;
use crate::layer::Layer;
use crate::recall::Recall;
use crate::spec::{LayerSpec, OnError};

/// Something that looks at answers. It must be quick and say the same of the same answer.
pub trait Guard: fmt::Debug + Send + Sync {
    /// What it says of an answer.
    fn check(&self, answer: &Answer<'_>) -> Verdict;
}

/// An answer of a model.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its items, in order.
    pub items: &'a [Item],
}

impl<'a> Answer<'a> {
    /// What the model says: the texts of its messages, joined by line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        let said = self
            .items
            .iter()
            .filter(|item| item.role() == Some(Role::Assistant));
        let texts: Vec<String> = said.map(Item::text).collect();
        texts.join("\n")
    }

    /// The tools it calls.
    pub fn calls(&self) -> impl Iterator<Item = &'a FunctionCall> {
        self.items.iter().filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        })
    }

    /// The same items, each text of the model's messages as `change` leaves it.
    #[must_use]
    pub fn mended(&self, mut change: impl FnMut(&str) -> String) -> Vec<Item> {
        let mut items = self.items.to_vec();
        for item in &mut items {
            let Item::Message(message) = item else {
                continue;
            };
            if message.role != Role::Assistant {
                continue;
            }
            for part in &mut message.content {
                if let Part::OutputText(part) = part {
                    part.text = change(&part.text);
                }
            }
        }
        items
    }
}

/// Guardrails as a layer, named `guardrails`.
///
/// ```
/// use contexture_ir::{BranchName, ConversationId, Item, Message, Owner, Role};
/// use contexture_layers::builtin::{Guardrails, MaxLength};
/// use contexture_layers::{Gate, HookContext, Layers, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let guardrails = Guardrails::new()
///     .with(MaxLength::new(10))
///     .rule("delete_*", Gate::Deny("nothing is deleted here".to_owned()));
/// let layers = Layers::new().with(guardrails)?;
/// let context = HookContext::new(Owner::new("ada")?, ConversationId::new("c")?, BranchName::main());
/// let mut states = layers.states([]);
/// layers.init(&mut states, &context).await?;
///
/// let long = [Item::from(Message::text(Role::Assistant, "a long answer"))];
/// let (verdict, _) = layers.after_model(&mut states, &long, &context).await?;
/// assert!(matches!(verdict, Verdict::Retry { .. }));
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Guardrails {
    id: LayerId,
    guards: Vec<Arc<dyn Guard>>,
    rules: Vec<ToolRule>,
    max_retries: u32,
}

/// What becomes of calls of certain tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// Which tools.
    pub tool: Pattern,
    /// What becomes of their calls.
    pub gate: Gate,
}

impl Guardrails {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("guardrails"),
            guards: Vec::new(),
            rules: Vec::new(),
            max_retries: 3,
        }
    }

    /// One guard more. Each sees the answer as those before it have mended it; the first that wants it again, or the
    /// end, has the last word.
    #[must_use]
    pub fn with(mut self, guard: impl Guard + 'static) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// One rule for tools more. The first whose pattern fits a tool counts; a tool that none fits may run.
    #[must_use]
    pub fn rule(mut self, tool: impl Into<Pattern>, gate: Gate) -> Self {
        let tool = tool.into();
        self.rules.push(ToolRule { tool, gate });
        self
    }

    /// How often one answer may be asked for again. Default 3.
    #[must_use]
    pub const fn retrying(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// How often one answer may be asked for again.
    #[must_use]
    pub const fn max_retries(&self) -> u32 {
        self.max_retries
    }
}

impl Default for Guardrails {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Layer for Guardrails {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            on_error: OnError::Fail,
            ..LayerSpec::new(self.id.clone())
        }
    }

    async fn recall(&self, (): &(), _: &Recall<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn after_model(
        &self,
        (): &mut (),
        answer: &[Item],
        _: &HookContext,
    ) -> Result<Verdict, LayerError> {
        let mut items = Cow::Borrowed(answer);
        for guard in &self.guards {
            match guard.check(&Answer { items: &items }) {
                Verdict::Pass => {}
                Verdict::Fix(mended) => items = Cow::Owned(mended),
                last => return Ok(last),
            }
        }
        Ok(match items {
            Cow::Borrowed(_) => Verdict::Pass,
            Cow::Owned(mended) => Verdict::Fix(mended),
        })
    }

    async fn before_tool(
        &self,
        (): &mut (),
        call: &ToolRequest,
        _: &HookContext,
    ) -> Result<Gate, LayerError> {
        let tool = call.id();
        let rule = self.rules.iter().find(|rule| rule.tool.matches(&tool));
        Ok(rule.map_or(Gate::Allow, |rule| rule.gate.clone()))
    }
}

/// The final answer is JSON, perhaps of a schema. An answer that calls tools is not final.
///
/// JSON in a Markdown fence is taken out of it; anything else is asked for again.
#[derive(Debug)]
pub struct JsonOutput {
    schema: Option<Checker>,
}

impl JsonOutput {
    /// Any JSON.
    #[must_use]
    pub const fn any() -> Self {
        Self { schema: None }
    }

    /// JSON of this schema.
    ///
    /// # Errors
    /// A schema that cannot be used.
    pub fn of(schema: &Raw) -> Result<Self, SchemaError> {
        let schema = Some(Checker::new(schema)?);
        Ok(Self { schema })
    }

    /// What is wrong with a text.
    fn flaw(&self, text: &str) -> Option<String> {
        let json = match Raw::parse(text.trim()) {
            Ok(json) => json,
            Err(_) => {
                // The parser's account, without the text.
                let error = serde_json::from_str::<serde_json::Value>(text).err();
                return Some(error.map_or_else(String::new, |error| error.to_string()));
            }
        };
        match self.schema.as_ref()?.check(&json) {
            Err(error) => Some(error.to_string()),
            Ok(findings) if findings.is_empty() => None,
            Ok(findings) => {
                let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                Some(findings.join("; "))
            }
        }
    }
}

impl Guard for JsonOutput {
    fn check(&self, answer: &Answer<'_>) -> Verdict {
        if answer.calls().next().is_some() {
            return Verdict::Pass;
        }
        let text = answer.text();
        let Some(flaw) = self.flaw(&text) else {
            return Verdict::Pass;
        };
        let inner = unfenced(&text).filter(|inner| self.flaw(inner).is_none());
        if let Some(inner) = inner {
            let mended = answer.mended(|part| unfenced(part).unwrap_or(part).to_owned());
            if (Answer { items: &mended }).text().trim() == inner {
                return Verdict::Fix(mended);
            }
        }
        Verdict::Retry {
            feedback: format!(
                "Your answer must be JSON and nothing else, as asked. What is wrong with it: {flaw}. Answer again."
            ),
        }
    }
}

/// What stands between the fences, if that is all there is.
fn unfenced(text: &str) -> Option<&str> {
    let text = text.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (language, inner) = text.split_once('\n')?;
    let inner = inner.trim();
    let bare = matches!(language.trim(), "" | "json" | "JSON") && !inner.contains("```");
    bare.then_some(inner)
}

/// Something the model must not say. Held against its texts, not against arguments of tools.
#[derive(Clone, Debug)]
pub struct Forbidden {
    pattern: Regex,
    on_hit: OnHit,
}

/// What becomes of an answer that says what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// It is asked for again, the model having been told this.
    Retry(String),
    /// The run ends.
    Stop(String),
    /// What must not be said is replaced by this text.
    Replace(String),
}

impl Forbidden {
    /// This pattern, in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// A pattern that is none.
    pub fn new(pattern: &str, on_hit: OnHit) -> Result<Self, LayerError> {
        let pattern = Regex::new(pattern).map_err(LayerError::failed)?;
        Ok(Self { pattern, on_hit })
    }
}

impl Guard for Forbidden {
    fn check(&self, answer: &Answer<'_>) -> Verdict {
        if !self.pattern.is_match(&answer.text()) {
            return Verdict::Pass;
        }
        match &self.on_hit {
            OnHit::Retry(feedback) => Verdict::Retry {
                feedback: feedback.clone(),
            },
            OnHit::Stop(reason) => Verdict::Stop {
                reason: reason.clone(),
            },
            OnHit::Replace(by) => {
                let by = regex::NoExpand(by);
                let mended =
                    answer.mended(|text| self.pattern.replace_all(text, by.clone()).into_owned());
                match self.pattern.is_match(&(Answer { items: &mended }).text()) {
                    false => Verdict::Fix(mended),
                    true => Verdict::Stop {
                        reason: "the answer says what it must not, across its parts".to_owned(),
                    },
                }
            }
        }
    }
}

/// The model's text is at most so long; a longer one is asked for again.
#[derive(Clone, Copy, Debug)]
pub struct MaxLength {
    characters: usize,
}

impl MaxLength {
    /// At most so many characters.
    #[must_use]
    pub const fn new(characters: usize) -> Self {
        Self { characters }
    }
}

impl Guard for MaxLength {
    fn check(&self, answer: &Answer<'_>) -> Verdict {
        let (length, limit) = (answer.text().chars().count(), self.characters);
        if length <= limit {
            return Verdict::Pass;
        }
        Verdict::Retry {
            feedback: format!(
                "Your answer has {length} characters; at most {limit} are wanted. Answer again, shorter."
            ),
        }
    }
}

/// Calls that cannot run are asked for again with a word about what went wrong: a tool that is not there, the name of a
/// skill in the place of a tool's, arguments that are not JSON or not of the tool's schema.
#[derive(Debug, Default)]
pub struct ToolCalls {
    tools: BTreeMap<String, Option<Checker>>,
    skills: Vec<String>,
}

impl ToolCalls {
    /// These tools are there.
    ///
    /// # Errors
    /// A schema that cannot be used.
    pub fn of<'a>(
        tools: impl IntoIterator<Item = &'a ToolDefinition>,
    ) -> Result<Self, SchemaError> {
        let mut known = BTreeMap::new();
        for tool in tools {
            let parameters = match tool {
                ToolDefinition::Function(function) => function.parameters.as_ref(),
                _ => None,
            };
            let checker = parameters.map(Checker::new).transpose()?;
            known.insert(tool.name().to_owned(), checker);
        }
        Ok(Self {
            tools: known,
            skills: Vec::new(),
        })
    }

    /// The same, knowing these skills by name.
    #[must_use]
    pub fn skills<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.skills = names.into_iter().map(Into::into).collect();
        self
    }

    fn flaw(&self, call: &FunctionCall) -> Option<String> {
        let name = &call.name;
        let Some(schema) = self.tools.get(name) else {
            if self.skills.contains(name) {
                return Some(format!(
                    "{name} is a skill, not a tool: read it with load_skill"
                ));
            }
            let there: Vec<&str> = self.tools.keys().map(String::as_str).collect();
            return Some(match there.as_slice() {
                [] => format!("there is no tool {name}, and no other: answer in words"),
                there => format!("there is no tool {name}; there are: {}", there.join(", ")),
            });
        };
        let written = match call.arguments.trim() {
            "" => "{}",
            written => written,
        };
        let Ok(arguments) = Raw::parse(written) else {
            return Some(format!("the arguments of {name} are not JSON"));
        };
        match schema.as_ref()?.check(&arguments) {
            Err(error) => Some(format!("the arguments of {name}: {error}")),
            Ok(findings) if findings.is_empty() => None,
            Ok(findings) => {
                let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                let findings = findings.join("; ");
                Some(format!("the arguments of {name} do not fit: {findings}"))
            }
        }
    }
}

impl Guard for ToolCalls {
    fn check(&self, answer: &Answer<'_>) -> Verdict {
        let flaws: Vec<String> = answer.calls().filter_map(|call| self.flaw(call)).collect();
        if flaws.is_empty() {
            return Verdict::Pass;
        }
        let flaws = flaws.join("\n");
        Verdict::Retry {
            feedback: format!("Nothing was run. {flaws}\nCall again."),
        }
    }
}
