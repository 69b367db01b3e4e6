//! The policy of a request: the one its header names, else that of the first route that fits.
//!
//! Allowed tools and redaction are enforced by the route's policy, whatever the header names; a named policy can only
//! restrict further. It fails closed: where a route by model restricts something, a request whose model cannot be read is
//! refused.

use std::sync::Arc;

use axum::http::StatusCode;
use contexture::engine::Secrets;
use contexture::tools::Pattern;
use contexture_api::policy::{PolicyConfig, RedactConfig, ToolsConfig};

use crate::access::Principal;
use crate::config::{Config, RouteConfig};
use crate::problem::Problem;
use crate::proxy::control_headers::ControlHeaders;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::request_body::{RequestBody, UnreadableModel};
use crate::proxy::route::model_call::{ModelEndpoint, model_in_path};
use crate::proxy::route::target::RouteTarget;
use crate::state::App;

/// The policies that apply to a request: what may be changed in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PolicyChoice<'a> {
    /// The policy and its name.
    pub(crate) policy: Option<(&'a str, &'a PolicyConfig)>,
    /// The route's policy, where the request names another one.
    route: Option<&'a PolicyConfig>,
    /// Whether the request asks to go without the rules that its user stated.
    without_rules: bool,
}

/// The parts of a request that routes match on.
pub(crate) struct PolicyQuery<'a> {
    pub(crate) target: &'a RouteTarget<'a>,
    /// The model call that it is, if it is one.
    pub(crate) endpoint: Option<&'a ModelEndpoint>,
    pub(crate) principal: &'a Principal,
    pub(crate) body: &'a Arc<RequestBody>,
}

impl<'a> PolicyChoice<'a> {
    /// Resolves the policies that apply to a request.
    ///
    /// # Errors
    /// The header names no policy that is configured, or a restriction depends on the model, and that cannot be read.
    pub(crate) async fn resolve_policy(
        app: &'a App,
        query: &PolicyQuery<'_>,
        control_headers: &ControlHeaders,
    ) -> Result<Self, ProxyRefusal> {
        let config = app.config();
        // Matched even if the header names a policy: the restrictions of the route hold in any
        // case.
        let route = query.match_route(app).await?;
        let without_rules = control_headers.without_rules;
        let Some(name) = &control_headers.policy else {
            return Ok(Self {
                policy: route,
                route: None,
                without_rules,
            });
        };
        let policy = config.policies.get_key_value(name);
        let (name, policy) = policy.ok_or_else(|| unknown_policy(name, config))?;
        Ok(Self {
            policy: Some((name, policy)),
            route: route.map(|(_, policy)| policy),
            without_rules,
        })
    }

    /// Returns which tools may be offered: those that every policy allows.
    pub(crate) fn allowed_tools(&self) -> ToolsConfig {
        let mut tools = self.active_policies().map(|policy| &policy.tools);
        let own = tools.next().cloned().unwrap_or_default();
        tools.fold(own, |own, other| own.intersect_with(other))
    }

    /// Returns the secrets to take out of the request's strings; `None` where nothing is redacted.
    pub(crate) fn secret_patterns(&self) -> Option<Secrets> {
        let redact_configs = self
            .active_policies()
            .filter_map(|policy| policy.redact.as_option());
        let mut secrets = Secrets::default();
        for pattern in redact_configs.flat_map(RedactConfig::secret_patterns) {
            // Both policies may name the same kind, and searching for it twice would find nothing
            // new.
            if !secrets.patterns.contains(&pattern) {
                secrets.patterns.push(pattern);
            }
        }
        (!secrets.patterns.is_empty()).then_some(secrets)
    }

    /// Returns the named policy and the route's, as far as there are.
    fn active_policies(&self) -> impl Iterator<Item = &'a PolicyConfig> {
        let own = self.policy.map(|(_, policy)| policy);
        own.into_iter().chain(self.route)
    }

    /// Returns the policy if it may rewrite the request. Its tool rule covers server tools too.
    pub(crate) fn rewrite_policy(&self) -> Option<PolicyConfig> {
        let (_, policy) = self.policy.filter(|(_, policy)| policy.can_rewrite())?;
        Some(PolicyConfig {
            tools: self.allowed_tools(),
            rules: policy.rules && !self.without_rules,
            ..policy.clone()
        })
    }
}

impl PolicyQuery<'_> {
    /// Whether the body is JSON, or has to be, so that its strings can be redacted.
    pub(crate) fn has_json_body(&self) -> bool {
        self.endpoint.is_some() || !self.body.bytes().is_empty() && self.body.is_json()
    }

    /// Returns the policy of the first route that fits.
    async fn match_route<'c>(
        &self,
        app: &'c App,
    ) -> Result<Option<(&'c str, &'c PolicyConfig)>, ProxyRefusal> {
        let config = app.config();
        let model = self.resolve_model(app).await;
        for route in config
            .routes
            .iter()
            .filter(|route| self.is_matched_by(route))
        {
            let policy = config.policies.get_key_value(&route.policy);
            let policy = policy.map(|(name, policy)| (name.as_str(), policy));
            match (&route.model, &model) {
                (None, _) => return Ok(policy),
                (Some(pattern), Ok(model)) => {
                    let is_it = |model: &String| Pattern::new(pattern).matches_name(model);
                    if model.as_ref().is_some_and(is_it) {
                        return Ok(policy);
                    }
                }
                // The route may be the one that forbids something: passing on would circumvent it.
                (Some(_), Err(error)) => {
                    if policy.is_some_and(|(_, policy)| self.is_restricted_by(policy)) {
                        return Err(unreadable_model(*error));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the model that routes are matched by. The body is parsed only where a route's answer depends on it.
    async fn resolve_model(&self, app: &App) -> Result<Option<String>, UnreadableModel> {
        let config = app.config();
        if let Some(model) = model_in_path(self.target) {
            return Ok(Some(model));
        }
        let redacts = |policy: &PolicyConfig| policy.redact.as_option().is_some();
        // A request that calls no model can only be redacted.
        let can_change = self.endpoint.is_some()
            || self.has_json_body() && config.policies.values().any(redacts);
        let mut routes = config.routes.iter();
        let names_model = |route: &RouteConfig| self.is_matched_by(route) && route.model.is_some();
        match can_change && routes.any(names_model) {
            true => self.read_model(app).await,
            false => Ok(None),
        }
    }

    /// Whether a route is for such requests, whatever their model.
    fn is_matched_by(&self, route: &RouteConfig) -> bool {
        let is = |expected: &Option<String>, actual: Option<&str>| {
            expected
                .as_deref()
                .is_none_or(|expected| actual == Some(expected))
        };
        is(&route.upstream, Some(&self.target.upstream.name))
            && is(&route.key, self.principal.key.as_deref())
    }

    /// Whether a policy may have to take something out of it.
    fn is_restricted_by(&self, policy: &PolicyConfig) -> bool {
        let by_tools = self.endpoint.is_some() && !policy.tools.allows_all();
        by_tools || self.has_json_body() && policy.redact.as_option().is_some()
    }

    /// Reads the model from the body.
    async fn read_model(&self, app: &App) -> Result<Option<String>, UnreadableModel> {
        if !self.body.is_heavy() {
            return self.body.read_model().await;
        }
        let (pool, body) = (app.work_pool(), Arc::clone(self.body));
        let read = |_| async move { body.read_model().await };
        pool.run(&self.principal.owner, read).await
    }
}

fn unreadable_model(error: UnreadableModel) -> ProxyRefusal {
    if let UnreadableModel::NoMemory(error) = error {
        return Problem::from(error).into();
    }
    let message = "the request's model cannot be read, and what may be sent to some models is restricted here";
    ProxyRefusal::new(StatusCode::BAD_REQUEST, "unreadable", message)
}

fn unknown_policy(name: &str, config: &Config) -> ProxyRefusal {
    let known: Vec<&str> = config.policies.keys().map(String::as_str).collect();
    let known = match known.as_slice() {
        [] => "none is configured".to_owned(),
        known => format!("there are {}", known.join(", ")),
    };
    let message = format!("the header x-contexture-policy: there is no policy {name:?}; {known}");
    ProxyRefusal::new(StatusCode::BAD_REQUEST, "unknown_policy", message)
}
