//! The policy under test, and the configuration of a server that has it.
//!
//! Not here: what may stand in a policy; the server's configuration checks that.

use std::path::Path;

use contexture_server::Config;
use toml::{Table, Value};

use crate::error::EvalError;

/// The policy that is tested where no file names another: old outputs of tools become placeholders, long ones previews, and a
/// manifest stands for what does not fit. These are the members of a policy as `docs/proxy.md` explains them.
pub const DEFAULT_POLICY: &str = "\
clear = { keep_recent = 3 }
preview = 5000
compact = \"manifest\"
";

/// Name of the policy in the configuration of the server.
const NAME: &str = "tested";

/// A policy that was read and checked.
///
/// ```
/// use contexture_eval::{DEFAULT_POLICY, PolicyUnderTest};
///
/// let policy = PolicyUnderTest::parse(DEFAULT_POLICY, "default".as_ref(), None, 8000)?;
/// assert!(policy.to_toml().contains("limit_tokens = 8000"));
/// # Ok::<(), contexture_eval::EvalError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyUnderTest {
    members: Table,
}

impl PolicyUnderTest {
    /// Reads a policy from a file; the windows are those of [`Self::parse`].
    ///
    /// # Errors
    /// [`EvalError::Policy`] as for [`Self::parse`], and if the file cannot be read.
    pub fn load(file: &Path, window: Option<u64>, default_window: u64) -> Result<Self, EvalError> {
        let text = std::fs::read_to_string(file).map_err(|error| policy_error(file, &error))?;
        Self::parse(&text, file, window, default_window)
    }

    /// Reads a policy: its members, or a configuration with one section `[policies.…]`. A `window` in tokens replaces the
    /// policy's own `limit_tokens`; `default_window` holds where neither is given. `file` is what errors call the text.
    ///
    /// # Errors
    /// [`EvalError::Policy`] if the text is not TOML, has several policies or other sections, or names what does not exist.
    pub fn parse(
        text: &str,
        file: &Path,
        window: Option<u64>,
        default_window: u64,
    ) -> Result<Self, EvalError> {
        let mut members: Table = text.parse().map_err(|error| policy_error(file, &error))?;
        if let Some(policies) = members.remove("policies") {
            members = only_policy(policies, &members).map_err(|why| policy_error(file, &why))?;
        }
        let is_limited = members.contains_key("limit_tokens");
        if let Some(window) = window.or((!is_limited).then_some(default_window)) {
            let window = i64::try_from(window).unwrap_or(i64::MAX);
            members.insert("limit_tokens".to_owned(), Value::Integer(window));
        }
        let policy = Self { members };
        // Checked now and not when its first task begins: calls made until then would be paid for nothing.
        let mut config = Table::new();
        policy.add_to_config(&mut config, None);
        // The file is not the text that is parsed here, so only the key of a fault helps and not its line.
        Config::parse(&config.to_string(), "policy").map_err(|error| {
            let key = error.key.as_deref().unwrap_or_default();
            policy_error(
                file,
                &format!("{key}: {}", error.why).trim_start_matches(": "),
            )
        })?;
        Ok(policy)
    }

    /// Returns the members of the policy as TOML, one a line.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.members.to_string()
    }

    /// Adds the policy and a route to it, for this model or for all.
    pub(crate) fn add_to_config(&self, config: &mut Table, model: Option<&str>) {
        let policies = Table::from_iter([(NAME.to_owned(), Value::Table(self.members.clone()))]);
        config.insert("policies".to_owned(), Value::Table(policies));
        let mut route = Table::from_iter([("policy".to_owned(), Value::from(NAME))]);
        if let Some(model) = model {
            route.insert("model".to_owned(), Value::from(model));
        }
        config.insert("routes".to_owned(), Value::Array(vec![route.into()]));
    }
}

/// Returns the only policy of a configuration that has nothing else.
fn only_policy(policies: Value, rest: &Table) -> Result<Table, String> {
    if let Some(other) = rest.keys().next() {
        // A server's other settings would be left out without a word.
        return Err(format!(
            "it has `{other}` beside its policies; expected one policy and nothing else"
        ));
    }
    let mut policies = match policies {
        Value::Table(policies) => policies.into_iter(),
        _ => return Err("`policies` is no table".to_owned()),
    };
    match (policies.next(), policies.next()) {
        (Some((_, Value::Table(members))), None) => Ok(members),
        _ => Err("it has not exactly one policy; expected one, as in [policies.frugal]".to_owned()),
    }
}

fn policy_error(file: &Path, why: &dyn std::fmt::Display) -> EvalError {
    EvalError::Policy {
        file: file.to_owned(),
        why: why.to_string(),
    }
}
