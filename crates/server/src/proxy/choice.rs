//! Which policy a request gets: the one it asks for, else that of the first route that fits.
//!
//! Which tools may be offered and what is redacted is the route's word, whatever the request asks for; a policy that it
//! names can only take more away. It fails closed: where a route by model has such a word, a request whose model cannot
//! be read does not pass.

use axum::http::StatusCode;
use contexture::engine::Secrets;
use serde::Deserialize;

use crate::app::App;
use crate::config::{Config, PolicyConfig, RedactConfig, RouteConfig, ToolsConfig};
use crate::keys::Principal;
use crate::proxy::call::{Call, model_in};
use crate::proxy::came::Came;
use crate::proxy::place::Place;
use crate::proxy::refusal::Refusal;
use crate::proxy::wishes::Wishes;

/// What may be changed in a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice<'a> {
    /// The policy and its name.
    pub(crate) policy: Option<(&'a str, &'a PolicyConfig)>,
    /// The route's, if that is another one.
    route: Option<&'a PolicyConfig>,
}

/// A request as routes look at it.
pub(crate) struct Asking<'a> {
    pub(crate) place: &'a Place<'a>,
    /// What it asks a model, if it asks one.
    pub(crate) call: Option<&'a Call>,
    pub(crate) principal: &'a Principal,
    pub(crate) came: &'a Came,
}

impl<'a> Choice<'a> {
    /// # Errors
    /// There is no policy of the name that is asked for, or it takes the model to say what holds, and that cannot be
    /// read.
    pub(crate) async fn of(
        app: &'a App,
        asking: &Asking<'_>,
        wishes: &Wishes,
    ) -> Result<Self, Refusal> {
        let config = app.config();
        let route = asking.route(config).await?;
        let Some(name) = &wishes.policy else {
            return Ok(Self {
                policy: route,
                route: None,
            });
        };
        let policy = config.policies.get_key_value(name);
        let (name, policy) = policy.ok_or_else(|| unknown(name, config))?;
        Ok(Self {
            policy: Some((name, policy)),
            route: route.map(|(_, policy)| policy),
        })
    }

    /// Which tools may be offered.
    pub(crate) fn tools(&self) -> ToolsConfig {
        let mut tools = self.policies().map(|policy| &policy.tools);
        let own = tools.next().cloned().unwrap_or_default();
        tools.fold(own, |own, other| own.within(other))
    }

    /// What is taken out of the request's strings; `None` where they stay.
    pub(crate) fn secrets(&self) -> Option<Secrets> {
        let said = self.policies().filter_map(|policy| policy.redact.on());
        let mut secrets = Secrets::default();
        for pattern in said.flat_map(RedactConfig::patterns) {
            if !secrets.patterns.contains(&pattern) {
                secrets.patterns.push(pattern);
            }
        }
        (!secrets.patterns.is_empty()).then_some(secrets)
    }

    /// The policies whose word holds.
    fn policies(&self) -> impl Iterator<Item = &'a PolicyConfig> {
        let own = self.policy.map(|(_, policy)| policy);
        own.into_iter().chain(self.route)
    }

    /// The policy, if it may change what is said. Which tools may be offered holds for ours too.
    pub(crate) fn rewriting(&self) -> Option<PolicyConfig> {
        let (_, policy) = self.policy.filter(|(_, policy)| policy.rewrites())?;
        Some(PolicyConfig {
            tools: self.tools(),
            ..policy.clone()
        })
    }
}

impl Asking<'_> {
    /// Whether it is JSON, or has to be: its strings may be redacted.
    pub(crate) fn is_read(&self) -> bool {
        self.call.is_some() || !self.came.bytes().is_empty() && self.came.is_json()
    }

    async fn route<'c>(
        &self,
        config: &'c Config,
    ) -> Result<Option<(&'c str, &'c PolicyConfig)>, Refusal> {
        let redacts = |policy: &PolicyConfig| policy.redact.on().is_some();
        // What asks no model can only be redacted: else it is not looked into.
        let matters =
            self.call.is_some() || self.is_read() && config.policies.values().any(redacts);
        let mut routes = config.routes.iter().filter(|route| self.is_on(route));
        let by_model = matters && routes.any(|route| route.model.is_some());
        let named = model_in(self.place);
        let model = match (named, by_model) {
            (Some(model), _) => Ok(Some(model)),
            (None, true) => self.model().await,
            (None, false) => Ok(None),
        };
        for route in config.routes.iter().filter(|route| self.is_on(route)) {
            let policy = config.policies.get_key_value(&route.policy);
            let policy = policy.map(|(name, policy)| (name.as_str(), policy));
            match (&route.model, &model) {
                (None, _) => return Ok(policy),
                (Some(pattern), Ok(model)) => {
                    let is_it = |model: &String| is_like(pattern, model);
                    if model.as_ref().is_some_and(is_it) {
                        return Ok(policy);
                    }
                }
                (Some(_), Err(Unreadable)) => {
                    if policy.is_some_and(|(_, policy)| self.is_held_back_by(policy)) {
                        return Err(unreadable());
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether a route is for such requests, whatever their model.
    fn is_on(&self, route: &RouteConfig) -> bool {
        let is = |said: &Option<String>, own: Option<&str>| {
            said.as_deref().is_none_or(|said| own == Some(said))
        };
        is(&route.upstream, Some(&self.place.upstream.name))
            && is(&route.key, self.principal.key.as_deref())
    }

    /// Whether a policy may take something out of it that must not pass.
    fn is_held_back_by(&self, policy: &PolicyConfig) -> bool {
        let by_tools = self.call.is_some() && !policy.tools.allows_all();
        by_tools || self.is_read() && policy.redact.on().is_some()
    }

    /// The model that the body names. One that is named twice is not known: not every host reads the same.
    async fn model(&self) -> Result<Option<String>, Unreadable> {
        #[derive(Deserialize)]
        struct Body {
            model: Option<String>,
        }
        let body = self.came.unpacked().await.map_err(|_| Unreadable)?;
        let body: Body = serde_json::from_slice(body).map_err(|_| Unreadable)?;
        Ok(body.model)
    }
}

/// A body that does not say which model it is for.
#[derive(Clone, Copy, Debug)]
struct Unreadable;

/// Whether a name is like a pattern, in which `*` stands for any characters.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.filter_map(|at| name.get(at..))
        .any(|end| is_like(rest, end))
}

fn unreadable() -> Refusal {
    let message = "the request's model cannot be read, and what may be sent to some models is restricted here";
    Refusal::new(StatusCode::BAD_REQUEST, "unreadable", message)
}

fn unknown(name: &str, config: &Config) -> Refusal {
    let known: Vec<&str> = config.policies.keys().map(String::as_str).collect();
    let known = match known.as_slice() {
        [] => "none is configured".to_owned(),
        known => format!("there are {}", known.join(", ")),
    };
    let message = format!("the header x-contexture-policy: there is no policy {name:?}; {known}");
    Refusal::new(StatusCode::BAD_REQUEST, "unknown_policy", message)
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("gpt-4.1", "gpt-4.1", true),
            ("gpt-4.1", "gpt-4.1-mini", false),
            ("gpt-*", "gpt-4.1-mini", true),
            ("*", "", true),
            ("*-mini", "gpt-4.1-mini", true),
            ("*-mini", "gpt-4.1-mini-2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("é*", "éé", true),
        ] {
            assert_eq!(is_like(pattern, name), expected, "{pattern} {name}");
        }
    }
}
