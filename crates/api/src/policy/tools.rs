//! `tools`: which tools may be offered.

use std::collections::BTreeSet;

use contexture::compile::compaction::{CallEffect, ToolHints};
use contexture::ir::{Item, Transcript};
use contexture::tools::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::policy::select_tools::select_tools;

/// Which tools may be offered, by name, in any case; in a name `*` stands for any characters and `?` for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as tools = { deny = [\"shell\"] }"
)]
pub struct ToolsConfig {
    /// These and no others. Default: all.
    #[schema(value_type = Option<Vec<String>>)]
    #[schemars(with = "Option<BTreeSet<String>>")]
    pub allow: Option<BTreeSet<Pattern>>,
    /// None of these.
    #[schema(value_type = Vec<String>)]
    #[schemars(with = "BTreeSet<String>")]
    pub deny: BTreeSet<Pattern>,
    /// Of more functions than this only so many, those that fit best what the user says first; they stay for the
    /// whole conversation. Those that were called stay too, and providers' own tools. Default: all.
    pub select: Option<usize>,
    /// Names of tools whose calls change nothing, whatever their names and annotations say. What stands for old history leaves
    /// out what only read. Default: none.
    pub reads: BTreeSet<String>,
    /// Names of tools whose calls change something, which what stands for old history names one by one. Default: none.
    pub changes: BTreeSet<String>,
    /// What else `allow` lists, of policies that hold as well: a tool has to be allowed by each.
    #[serde(skip)]
    also_allow: Vec<BTreeSet<Pattern>>,
}

impl ToolsConfig {
    /// Returns whether a tool of this name may be offered.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.allows_spelled(&[name])
    }

    /// Returns whether a tool with a name in these spellings may be offered: none of them may be denied, and one has to be
    /// allowed.
    pub fn allows_spelled(&self, names: &[impl AsRef<str>]) -> bool {
        let has = |set: &BTreeSet<Pattern>| {
            let mut forms = set.iter();
            forms.any(|form| names.iter().any(|name| form.matches_name(name.as_ref())))
        };
        self.allow.iter().chain(&self.also_allow).all(has) && !has(&self.deny)
    }

    /// Takes the tools out of a request that may not be offered to a model with this history: the forbidden ones, then, where so many
    /// are selected, those that fit worst. Returns whether a tool was forbidden.
    pub fn retain_offered<'a>(
        &self,
        request: &mut Transcript,
        history: impl Iterator<Item = &'a Item> + Clone,
    ) -> bool {
        let before = request.tools.len();
        request.tools.retain(|tool| self.allows(tool.name()));
        let is_one_forbidden = request.tools.len() < before;
        if let Some(most) = self.select {
            request.tools = select_tools(most, request, history);
        }
        is_one_forbidden
    }

    /// Returns what is left where another's word holds as well. How many are selected is still its own word.
    #[must_use]
    pub fn intersect_with(&self, other: &Self) -> Self {
        let mut allow = self.allow.iter().chain(&self.also_allow);
        let others = other.allow.iter().chain(&other.also_allow);
        Self {
            allow: allow.next().or(other.allow.as_ref()).cloned(),
            // The other's first list may be among them twice, which changes nothing.
            also_allow: allow.chain(others).cloned().collect(),
            deny: &self.deny | &other.deny,
            select: self.select,
            reads: &self.reads | &other.reads,
            changes: &self.changes | &other.changes,
        }
    }

    /// Returns what it says of the effects of tools: what is in both lists changes something.
    #[must_use]
    pub fn tool_hints(&self) -> ToolHints {
        let effects = [
            (&self.reads, CallEffect::Reads),
            (&self.changes, CallEffect::Changes),
        ];
        let named = effects
            .iter()
            .flat_map(|(names, effect)| names.iter().map(move |name| (name, *effect)));
        named.fold(ToolHints::default(), |hints, (name, effect)| {
            hints.with_effect(name, effect)
        })
    }

    /// Returns whether every tool may be offered.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::PolicyConfig;

    use super::*;

    #[test]
    fn a_policy_says_what_tools_do() {
        let policy = r#"{"compact":"manifest","tools":{"reads":["sync","both"],"changes":["check_basket","both"]}}"#;
        let policy: PolicyConfig = serde_json::from_str(policy).unwrap();
        let hints = policy.prepare_options(None).unwrap().compact.tool_hints;
        for (tool, effect) in [
            ("sync", Some(CallEffect::Reads)),
            ("check_basket", Some(CallEffect::Changes)),
            ("both", Some(CallEffect::Changes)),
            ("other", None),
        ] {
            assert_eq!(hints.effect_of(tool), effect, "{tool}");
        }
        let both = policy.tools.intersect_with(&ToolsConfig {
            changes: BTreeSet::from(["sync".to_owned()]),
            ..ToolsConfig::default()
        });
        let effect = both.tool_hints().effect_of("sync");
        assert_eq!(
            effect,
            Some(CallEffect::Changes),
            "in doubt it changes something"
        );
    }
}
