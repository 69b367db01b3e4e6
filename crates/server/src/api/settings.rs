//! What the server is set up with, for programs that show it: who calls, which models are known, which policies there are.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use contexture::catalogue::Money;
use contexture::layers::builtin::Skills;
use contexture::store::SumCalls;
use contexture::{EngineError, Owner};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Principal;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::config::{AccessScope, RouteConfig};
use crate::http::extractors::{Json, Query, ReadAccess};
use crate::problem::Problem;
use crate::state::App;
use crate::state::spending::{DaySpending, caller_spending};
use contexture_api::{
    ModelDocument, ModelsDocument, OwnerDocument, OwnersDocument, PoliciesDocument, PolicyDocument,
    PolicyRouteDocument, UsageDocument,
};

const LIST: &str = "models";
const OWNERS: &str = "owners";
const PAGE: usize = 100;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show_caller))
        .routes(routes!(list_owners))
        .routes(routes!(list_models))
        .routes(routes!(list_policies))
}

/// The caller, as the server sees it.
#[derive(Serialize, ToSchema)]
struct CallerDocument {
    /// Owner whose conversations the caller sees.
    owner: String,
    /// Name of the key that it used; `null` on a server without keys.
    key: Option<String>,
    /// What the caller may do.
    scopes: Vec<AccessScope>,
    /// What the calls of the owner cost today (UTC); `null` for a database that keeps no record of calls.
    spending: Option<SpendingDocument>,
    /// What the calls with the key cost today; `null` without a key.
    key_spending: Option<SpendingDocument>,
    /// Version of the server program.
    version: &'static str,
}

/// Money that was spent today, and may be.
#[derive(Serialize, ToSchema)]
#[schema(as = Spending)]
struct SpendingDocument {
    /// Cost of today's calls in dollars, a decimal.
    dollars: String,
    /// What may be spent a day in dollars, a decimal; `null` without a limit.
    dollars_per_day: Option<String>,
}

impl From<DaySpending> for SpendingDocument {
    fn from(today: DaySpending) -> Self {
        Self {
            dollars: today.spent.to_decimal_string(),
            dollars_per_day: today.limit.map(Money::to_decimal_string),
        }
    }
}

/// Returns who calls: the owner, the name of the key, what it may do, and what was spent today.
#[utoipa::path(
    get, path = "/whoami", tag = "server",
    responses((status = 200, description = "The caller", body = CallerDocument), ReadRefusals)
)]
async fn show_caller(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Extension(caller): Extension<Principal>,
) -> Result<Json<CallerDocument>, Problem> {
    let now_ms = Timestamp::now().as_millisecond();
    let (of_owner, of_key) = caller_spending(&app, &caller, now_ms).await?.unzip();
    Ok(Json(CallerDocument {
        owner: owner.to_string(),
        key: caller.key.as_deref().map(str::to_owned),
        scopes: caller.scopes().to_vec(),
        spending: of_owner.map(Into::into),
        key_spending: of_key.flatten().map(Into::into),
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// The owners to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListOwnersParams {
    /// Maximum number of owners. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// Lists the owners that have conversations or calls, with what each has stored and spent. Needs the scope `admin`. Every item of
/// the owners on a page is looked at, so it takes a second for a million items.
#[utoipa::path(
    get, path = "/owners", tag = "server", params(ListOwnersParams),
    responses((status = 200, description = "A page, in order of names", body = OwnersDocument), ReadRefusals)
)]
async fn list_owners(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Extension(caller): Extension<Principal>,
    Query(listing): Query<ListOwnersParams>,
) -> Result<Json<OwnersDocument>, Problem> {
    caller.require_scope(AccessScope::Admin)?;
    let limit = page::page_length(listing.limit, PAGE)?;
    let after = listing.after.as_deref();
    let after: Option<Owner> = after
        .map(|cursor| page::decode_cursor::<String>(&owner, OWNERS, cursor))
        .transpose()?
        .and_then(|name| Owner::new(&name).ok());
    let store = app.engine().store();
    // One more than a page tells whether there is another.
    let mut owners: BTreeMap<String, OwnerDocument> = BTreeMap::new();
    if let Some(maintenance) = store.maintenance() {
        for size in maintenance.list_owners(after.as_ref(), limit + 1).await? {
            owners.insert(size.owner.to_string(), OwnerDocument::from(&size));
        }
    }
    if let Some(calls) = store.calls() {
        for name in calls.list_call_owners(after.as_ref(), limit + 1).await? {
            let document = OwnerDocument::without_conversations(&name);
            owners.entry(name.to_string()).or_insert(document);
        }
    }
    let more = owners.len() > limit;
    let mut owners: Vec<OwnerDocument> = owners.into_values().take(limit).collect();
    if let Some(calls) = store.calls() {
        for owner in &mut owners {
            let name = Owner::new(&owner.owner).map_err(EngineError::from)?;
            let sums = calls.sum_calls(&name, SumCalls::default()).await?;
            owner.set_calls(&UsageDocument::from_sums(&[], &sums).total);
        }
    }
    let last = owners.last().filter(|_| more);
    Ok(Json(OwnersDocument {
        next: last.map(|last| page::encode_cursor(&owner, OWNERS, &last.owner)),
        owners,
    }))
}

/// The models to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListModelsParams {
    /// Only those of this provider, such as `anthropic`.
    provider: Option<String>,
    /// Maximum number of models. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// Lists the models that are known, in the order of their names, with windows, prices and encodings.
#[utoipa::path(
    get, path = "/models", tag = "server", params(ListModelsParams),
    responses((status = 200, description = "A page", body = ModelsDocument), ReadRefusals)
)]
async fn list_models(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(listing): Query<ListModelsParams>,
) -> Result<Json<ModelsDocument>, Problem> {
    let limit = page::page_length(listing.limit, PAGE)?;
    let after = listing.after.as_deref();
    let after: Option<String> = after
        .map(|cursor| page::decode_cursor(&owner, LIST, cursor))
        .transpose()?;
    let provider = listing.provider.as_deref();
    let mut models: Vec<_> = app.engine().catalogue().models().collect();
    models.retain(|model| {
        provider.is_none_or(|provider| model.provider == provider)
            && after.as_ref().is_none_or(|after| model.id > *after)
    });
    models.sort_by(|one, other| one.id.cmp(&other.id));
    let more = models.len() > limit;
    models.truncate(limit);
    let last = models.last().filter(|_| more);
    Ok(Json(ModelsDocument {
        next: last.map(|last| page::encode_cursor(&owner, LIST, &last.id)),
        more,
        models: models.into_iter().map(ModelDocument::from).collect(),
    }))
}

/// Lists the policies of the proxy, with the routes that lead to each.
#[utoipa::path(
    get, path = "/policies", tag = "server",
    responses((status = 200, description = "All of them", body = PoliciesDocument), ReadRefusals)
)]
async fn list_policies(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
) -> Result<Json<PoliciesDocument>, Problem> {
    let config = app.config();
    let mut policies = Vec::with_capacity(config.policies.len());
    for (name, policy) in &config.policies {
        let mut settings = serde_json::to_value(policy)
            .map_err(|error| Problem::internal_error("policy", &error))?;
        // Folders of the server's machine mean nothing to callers over HTTP.
        if let Some(members) = settings.as_object_mut() {
            members.remove("skills");
        }
        let skills = app.skills_for_policy(name);
        policies.push(PolicyDocument {
            name: name.clone(),
            source: "configuration",
            settings,
            skills: skills.map_or_else(Vec::new, skill_names),
            routes: routes_to(&config.routes, name),
        });
    }
    Ok(Json(PoliciesDocument { policies }))
}

fn skill_names(skills: &Skills) -> Vec<String> {
    let skills = skills.skills().iter();
    skills.map(|skill| skill.name.clone()).collect()
}

/// Returns the routes that lead to a policy, with their places among all.
fn routes_to(routes: &[RouteConfig], policy: &str) -> Vec<PolicyRouteDocument> {
    let numbered = (1..).zip(routes);
    let to_policy = numbered.filter(|(_, route)| route.policy == policy);
    let document = |(place, route): (usize, &RouteConfig)| PolicyRouteDocument {
        place,
        upstream: route.upstream.clone(),
        model: route.model.clone(),
        key: route.key.clone(),
    };
    to_policy.map(document).collect()
}
