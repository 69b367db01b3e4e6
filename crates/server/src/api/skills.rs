//! The skills of this server: listed, read, and the files beside them.
//!
//! They are the server's and not an owner's: whoever may read sees them all.

use axum::extract::State;
use axum::http::StatusCode;
use contexture::layers::builtin::{Skill, SkillFileError};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::error_responses::ReadRefusals;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::{SkillDocument, SkillFileDocument, SkillsDocument};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_skills))
        .routes(routes!(show_skill))
        .routes(routes!(read_skill_file))
}

/// Lists the skills in the folders that the configuration names (`server.skills`).
#[utoipa::path(
    get, path = "/skills", tag = "skills",
    responses((status = 200, description = "All of them, without instructions", body = SkillsDocument), ReadRefusals)
)]
async fn list_skills(State(app): State<App>, ReadAccess(_): ReadAccess) -> Json<SkillsDocument> {
    let skills = app
        .skills()
        .iter()
        .map(SkillDocument::without_instructions)
        .collect();
    Json(SkillsDocument { skills })
}

/// Returns a skill with its instructions.
#[utoipa::path(
    get, path = "/skills/{skill}", tag = "skills",
    params(("skill" = String, Path, description = "Its name")),
    responses((status = 200, description = "It", body = SkillDocument), ReadRefusals)
)]
async fn show_skill(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    Path(name): Path<String>,
) -> Result<Json<SkillDocument>, Problem> {
    Ok(Json(SkillDocument::with_instructions(find_skill(
        &app, &name,
    )?)))
}

/// The file of a skill to return.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SkillFileParams {
    /// Path of the file in the skill's folder: at most 16 names joined by `/`.
    path: String,
}

/// Returns a file beside a skill's instructions: text of at most 1 MiB. Links are not followed.
#[utoipa::path(
    get, path = "/skills/{skill}/file", tag = "skills",
    params(("skill" = String, Path, description = "The skill's name"), SkillFileParams),
    responses((status = 200, description = "It", body = SkillFileDocument), ReadRefusals)
)]
async fn read_skill_file(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    Path(name): Path<String>,
    Query(SkillFileParams { path }): Query<SkillFileParams>,
) -> Result<Json<SkillFileDocument>, Problem> {
    let skill = find_skill(&app, &name)?.clone();
    let asked = path.clone();
    let read = tokio::task::spawn_blocking(move || skill.read_file(&asked)).await;
    let text = read
        .map_err(|error| Problem::internal_error("reading_stopped", &error))?
        .map_err(|error| skill_file_problem(&error))?;
    Ok(Json(SkillFileDocument {
        skill: name,
        path,
        text,
    }))
}

fn find_skill<'a>(app: &'a App, name: &str) -> Result<&'a Skill, Problem> {
    let found = app.skills().iter().find(|skill| skill.name == name);
    found.ok_or_else(|| Problem::new(Code::NotFound, format!("no skill {name:?}")))
}

fn skill_file_problem(error: &SkillFileError) -> Problem {
    let code = match error {
        SkillFileError::Missing { .. } => Code::NotFound,
        SkillFileError::BadPath { .. } => Code::BadQuery,
        SkillFileError::Unreadable { .. } => return Problem::internal_error(error.kind(), error),
        _ => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Problem::custom(error.kind(), status, error.to_string());
        }
    };
    Problem::new(code, error.to_string())
}
