//! Rules that no type expresses: what a policy must not say.

use std::fmt;

use contexture::compile::TextSize;

use crate::policy::{
    CompactConfig, PolicyConfig, SummaryCredentials, ToolPreviewConfig, WindowConfig,
};

/// What is wrong with a member of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// Names on the way to the member, outermost first.
    pub path: Vec<String>,
    /// What is wrong, and what was expected.
    pub detail: String,
}

impl PolicyFault {
    fn new(path: &str, detail: impl Into<String>) -> Self {
        Self {
            path: path.split('.').map(str::to_owned).collect(),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.join("."), self.detail)
    }
}

impl PolicyConfig {
    /// Returns the first member that says what it must not; `None` for a policy that can be followed.
    ///
    /// ```
    /// use contexture_api::policy::PolicyConfig;
    ///
    /// let policy: PolicyConfig = serde_json::from_str(r#"{"limit_tokens": 10}"#)?;
    /// let fault = policy.first_fault().map(|fault| fault.to_string());
    /// assert_eq!(fault.as_deref(), Some("limit_tokens: 10 is too little; at least 1000"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn first_fault(&self) -> Option<PolicyFault> {
        self.window_fault()
            .or_else(|| self.redact_fault())
            .or_else(|| self.size_fault())
            .or_else(|| self.guardrails_fault())
            .or_else(|| self.summary_fault())
    }

    /// Returns the first member that only a server follows: it takes secrets out before a message is stored, loads folders of skills,
    /// and has a model write summaries. `None` if anybody can follow the policy. What would ignore it refuses it.
    #[must_use]
    pub fn first_server_member(&self) -> Option<&'static str> {
        let members = [
            ("skills", !self.skills.is_empty()),
            ("redact", self.redact.as_option().is_some()),
            (
                "compact = \"summary\"",
                self.compact == Some(CompactConfig::Summary),
            ),
        ];
        let mut set = members.into_iter().filter(|(_, is_set)| *is_set);
        set.next().map(|(member, _)| member)
    }

    /// Members about summaries say nothing where none is wanted: such a policy is not what was meant.
    fn summary_fault(&self) -> Option<PolicyFault> {
        let members = [
            ("summary_model", self.summary_model.is_some()),
            ("summary_upstream", self.summary_upstream.is_some()),
            (
                "summary_credentials",
                self.summary_credentials != SummaryCredentials::default(),
            ),
        ];
        let wants_summaries = self.compact == Some(CompactConfig::Summary);
        let unused = members
            .iter()
            .find(|(_, is_set)| *is_set && !wants_summaries);
        if let Some((member, _)) = unused {
            let why = "no summaries are wanted: add compact = \"summary\"";
            return Some(PolicyFault::new(member, why));
        }
        let is_alone = self.summary_upstream.is_some() && self.summary_model.is_none();
        let why =
            "the conversation's own model is at the upstream of its request: name a summary_model";
        is_alone.then(|| PolicyFault::new("summary_upstream", why))
    }

    fn window_fault(&self) -> Option<PolicyFault> {
        let is_fine = match self.window {
            None => true,
            Some(WindowConfig {
                turns: Some(turns),
                tokens: None,
            }) => turns > 0,
            Some(WindowConfig {
                turns: None,
                tokens: Some(tokens),
            }) => tokens > 0,
            Some(_) => false,
        };
        let why = "expected { turns = N } or { tokens = N }, N at least 1";
        (!is_fine).then(|| PolicyFault::new("window", why))
    }

    fn redact_fault(&self) -> Option<PolicyFault> {
        let kinds = self.redact.as_option()?.kinds.as_ref()?;
        let why = "no kind is named: nothing would be taken out; leave kinds out for all";
        kinds.is_empty().then(|| PolicyFault::new("redact", why))
    }

    fn size_fault(&self) -> Option<PolicyFault> {
        let memory = self.memory.as_option();
        let preview = self.preview.as_ref();
        let least = [
            (
                "preview",
                preview.map(|preview| preview.characters),
                TextSize::SMALLEST,
            ),
            ("limit_tokens", self.limit_tokens, 1_000),
            (
                "memory.budget_tokens",
                memory.and_then(|memory| memory.budget_tokens),
                100,
            ),
            ("tools.select", self.tools.select.map(|most| most as u64), 1),
            ("ingest_timeout_ms", Some(self.ingest_timeout_ms), 1),
        ];
        let too_little = |value: u64, least: u64| {
            (value < least).then(|| format!("{value} is too little; at least {least}"))
        };
        let of_member = least.into_iter().find_map(|(member, value, least)| {
            let why = too_little(value?, least)?;
            Some(PolicyFault::new(member, why))
        });
        of_member.or_else(|| {
            let tools = preview.into_iter().flat_map(|preview| &preview.tools);
            let mut sizes = tools.filter_map(|(name, rule)| match rule {
                ToolPreviewConfig::Never => None,
                ToolPreviewConfig::Characters(characters) => Some((name, *characters)),
            });
            sizes.find_map(|(name, characters)| {
                let why = too_little(characters, TextSize::SMALLEST)?;
                Some(PolicyFault {
                    path: vec!["preview".to_owned(), "tools".to_owned(), name.clone()],
                    detail: why,
                })
            })
        })
    }

    fn guardrails_fault(&self) -> Option<PolicyFault> {
        let error = self.guardrails.guardrails().check().err()?;
        Some(PolicyFault::new("guardrails.output_tag", error.to_string()))
    }
}
