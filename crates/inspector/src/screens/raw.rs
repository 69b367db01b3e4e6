//! Replies that are not pages: bands as JSON for the script, and requests and items as plain text.

use serde_json::{Value, json};

use crate::api::{Api, ApiError};
use crate::exchange::{Parameters, Reply, unknown_page};
use crate::figures::{encode, format_dollars};
use crate::layout::link;
use crate::window::Window;

/// Calls of one block: the largest page of the API.
const BLOCK: &str = "500";

/// The bands of a block of calls of a branch or a whole conversation, newest first, as short as the module can read them.
pub(crate) async fn show_bands(
    api: &impl Api,
    id: &str,
    query: &Parameters,
) -> Result<Reply, ApiError> {
    let asked = [
        ("conversation", Some(id)),
        ("branch", query.get("branch")),
        ("include", Some("band")),
        ("limit", Some(BLOCK)),
        ("after", query.get("after")),
    ];
    let found = api.get(&link("/api/v1/calls", &asked)).await?;
    let calls = found.view().list("calls").map(|call| {
        json!({
            "id": call.text("id"),
            "at": call.text("at"),
            "model": call.text("model"),
            "outcome": call.text("outcome"),
            // As text: a browser would round otherwise than the pages do.
            "cost": call.text_of("dollars").map(format_dollars),
            "window": Window::of_call(call).map(|window| window.to_json()),
        })
    });
    let calls: Vec<Value> = calls.collect();
    let block = json!({"calls": calls, "next": found.view().text_of("next")});
    Ok(Reply::Json(block.to_string()))
}

/// A request of a call, whole.
pub(crate) async fn show_request(api: &impl Api, id: &str, view: &str) -> Result<Reply, ApiError> {
    let path = format!("/api/v1/calls/{}?include={view}", encode(id));
    let found = api.get(&path).await?;
    let document = found.view().at(view);
    let request = document.at("request").present().ok_or_else(|| ApiError {
        detail: document
            .text_of("missing")
            .unwrap_or("it is not known")
            .to_owned(),
        ..unknown_page()
    })?;
    Ok(Reply::Text(
        serde_json::to_string_pretty(request.json()).unwrap_or_default(),
    ))
}

/// An item, whole, as it is stored.
pub(crate) async fn show_item(api: &impl Api, id: &str, node: &str) -> Result<Reply, ApiError> {
    let path = format!(
        "/api/v1/conversations/{}/items/{}",
        encode(id),
        encode(node)
    );
    let found = api.get(&path).await?;
    Ok(Reply::Text(
        serde_json::to_string_pretty(found.view().json()).unwrap_or_default(),
    ))
}
