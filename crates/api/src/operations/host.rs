//! What a host has set up beside its conversations.

use std::collections::BTreeMap;

use contexture::layers::builtin::{Skill, Skills};

use crate::documents::PolicyChoice;
use crate::operations::OperationError;
use crate::policy::PolicyConfig;

/// The policies and skills of a server, or of a command line: what documents name.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Policies by name.
    pub policies: &'a BTreeMap<String, PolicyConfig>,
    /// Skills that documents may name.
    pub skills: &'a [Skill],
}

impl Host<'_> {
    /// Returns the policy that a document names or says; `None`: neither.
    ///
    /// # Errors
    /// There is none of this name, or what it says cannot be followed.
    pub(crate) fn find_policy(
        &self,
        choice: Option<&PolicyChoice>,
    ) -> Result<Option<PolicyConfig>, OperationError> {
        let policy = match choice {
            None => return Ok(None),
            Some(PolicyChoice::Named(name)) => {
                let policy = self.policies.get(name);
                return policy.cloned().map(Some).ok_or_else(|| {
                    let known: Vec<&str> = self.policies.keys().map(String::as_str).collect();
                    let known = match known.as_slice() {
                        [] => "none is configured".to_owned(),
                        known => format!("there are {}", known.join(", ")),
                    };
                    let detail = format!("there is no policy {name:?}; {known}");
                    OperationError::member("policy", detail)
                });
            }
            Some(PolicyChoice::Inline(policy)) => policy,
        };
        if !policy.skills.is_empty() {
            let detail = "a document names skills by its own member `skills`; folders are the configuration's";
            return Err(OperationError::member("policy.skills", detail));
        }
        if policy.redact.as_option().is_some() {
            let detail =
                "secrets are taken out before a message is stored: configure it at the server";
            return Err(OperationError::member("policy.redact", detail));
        }
        match policy.first_fault() {
            None => Ok(Some((**policy).clone())),
            Some(fault) => Err(OperationError::member(
                &format!("policy.{}", fault.path.join(".")),
                fault.detail,
            )),
        }
    }

    /// Returns the layer that lists the skills of these names; `None` for none.
    ///
    /// # Errors
    /// There is no skill of a name.
    pub(crate) fn find_skills(&self, names: &[String]) -> Result<Option<Skills>, OperationError> {
        if names.is_empty() {
            return Ok(None);
        }
        let find = |name: &String| {
            let skill = self.skills.iter().find(|skill| skill.name == *name);
            skill.cloned().ok_or_else(|| {
                let detail =
                    format!("there is no skill {name:?}; `GET /api/v1/skills` lists what is");
                OperationError::member("skills", detail)
            })
        };
        let skills = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let skills = Skills::new(skills);
        skills
            .map(Some)
            .map_err(|error| OperationError::member("skills", error.to_string()))
    }
}
