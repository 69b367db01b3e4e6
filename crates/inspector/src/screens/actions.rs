//! What forms do: each is one request of the API, and leads back to the page it came from.

use serde_json::json;

use crate::api::{Api, ApiError, Method};
use crate::exchange::{Parameters, unknown_page};
use crate::figures::encode;
use crate::layout::link;

/// Changes a conversation; returns the page that shows it then.
pub(crate) async fn change_conversation(
    api: &impl Api,
    id: &str,
    what: &str,
    form: &Parameters,
) -> Result<String, ApiError> {
    let base = format!("/api/v1/conversations/{}", encode(id));
    let thread = format!("/ui/c/{}", encode(id));
    let field = |name: &'static str| form.get(name).ok_or_else(|| missing(name));
    // The words are those of the forms; each is one operation of the API, which checks all that there is to check.
    match what {
        "rewind" => {
            let made = api
                .send(
                    Method::Post,
                    &format!("{base}/rewind"),
                    Some(&json!({"node": field("node")?})),
                )
                .await?;
            // To the branch that was made: the messages that are gone from it stay on the one before.
            return Ok(link(&thread, &[("branch", made.view().text_of("name"))]));
        }
        "branch" => {
            let body = json!({"name": field("name")?, "at": field("node")?});
            api.send(Method::Post, &format!("{base}/branches"), Some(&body))
                .await?;
        }
        "activate" => {
            let path = format!("{base}/branches/{}/activate", encode(field("branch")?));
            api.send(Method::Post, &path, None).await?;
        }
        "checkpoint" => {
            let path = format!("{base}/checkpoints/{}", encode(field("name")?));
            api.send(Method::Put, &path, None).await?;
        }
        "pin" | "unpin" => {
            let method = if what == "pin" {
                Method::Put
            } else {
                Method::Delete
            };
            api.send(
                method,
                &format!("{base}/pins/{}", encode(field("node")?)),
                None,
            )
            .await?;
        }
        "drop-rule" | "restore-rule" => {
            let method = if what == "drop-rule" {
                Method::Delete
            } else {
                Method::Put
            };
            api.send(
                method,
                &format!("{base}/rules/{}", encode(field("rule")?)),
                None,
            )
            .await?;
            return Ok(format!("{thread}/memory"));
        }
        _ => return Err(unknown_page()),
    }
    Ok(thread)
}

/// Allows or denies a call that waits.
pub(crate) async fn decide_call(
    api: &impl Api,
    id: &str,
    run: &str,
    form: &Parameters,
) -> Result<String, ApiError> {
    let field = |name: &'static str| form.get(name).ok_or_else(|| missing(name));
    let mut body =
        json!({"call": field("call")?, "decision": field("decision")?, "by": "inspector"});
    if let (Some(reason), Some(fields)) = (form.get("reason"), body.as_object_mut()) {
        fields.insert("reason".to_owned(), reason.into());
    }
    let path = format!(
        "/api/v1/conversations/{}/runs/{}/decisions",
        encode(id),
        encode(run)
    );
    api.send(Method::Post, &path, Some(&body)).await?;
    Ok("/ui/runs".to_owned())
}

fn missing(name: &str) -> ApiError {
    ApiError {
        status: 400,
        code: "bad_body".to_owned(),
        detail: format!("the form has no `{name}`"),
    }
}
