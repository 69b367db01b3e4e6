//! Conversations: made, listed, found, changed, deleted.

use reqwest::Method;
use serde_json::{Value, json};

use crate::test_support::Stand;

const PATH: &str = "/api/v1/conversations";

#[tokio::test]
async fn made_found_changed_deleted() {
    let stand = Stand::new().await;
    let new =
        json!({"id": "support-42", "title": "Gloves", "resource": "ada", "metadata": {"n": 1.50}});
    let made = stand.post(PATH, &new).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.headers["location"], "/api/v1/conversations/support-42");
    stand.post(PATH, &new).await.refused(409, "already_exists");

    let path = format!("{PATH}/support-42");
    let found = stand.get(&path).await;
    let mut document = found.ok();
    let overview = document
        .as_object_mut()
        .unwrap()
        .remove("overview")
        .unwrap();
    assert_eq!(
        (&overview["preview"], &overview["usage"]["calls"]),
        (&Value::Null, &json!(0))
    );
    assert_eq!(document, made.ok());
    assert_eq!(found.headers["etag"], "\"1\"");
    let change = json!({"title": null, "metadata": {"n": null, "m": [1]}});
    let changed = stand.call(Method::PATCH, &path, &change).await.ok();
    assert_eq!(
        (&changed["title"], &changed["metadata"]),
        (&Value::Null, &json!({"m": [1]}))
    );
    let kept = stand.call(Method::PATCH, &path, &json!({})).await.ok();
    assert_eq!(kept["metadata"], json!({"m": [1]}));

    let delete = stand.send(stand.request(Method::DELETE, &path)).await;
    assert_eq!((delete.status.as_u16(), delete.text.as_str()), (204, ""));
    stand.get(&path).await.refused(404, "not_found");
    stand
        .send(stand.request(Method::DELETE, &path))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn a_change_may_name_the_version_it_is_of() {
    let stand = Stand::new().await;
    stand.post(PATH, &json!({"id": "a"})).await.ok();
    let path = format!("{PATH}/a");
    let change = |version: &str| {
        stand
            .request(Method::PATCH, &path)
            .header("content-type", "application/json")
            .header("if-match", version)
            .body(r#"{"title":"x"}"#)
    };
    let first = stand.send(change("\"1\"")).await;
    assert_eq!(first.headers["etag"], "\"2\"");
    let second = stand.send(change("\"1\"")).await;
    second.refused(412, "version_conflict");
    assert_eq!(
        (&second.json()["expected"], &second.json()["actual"]),
        (&json!(1), &json!(2))
    );
    stand.send(change("one")).await.refused(400, "bad_header");
}

#[tokio::test]
async fn names_have_rules() {
    let stand = Stand::new().await;
    let long = "x".repeat(129);
    for id in ["", " ", "a/b", "ä", "a\u{0}", &long] {
        stand
            .post(PATH, &json!({"id": id}))
            .await
            .refused(422, "bad_name");
    }
    stand
        .post(PATH, &json!({"title": "x".repeat(2000)}))
        .await
        .refused(422, "limit");
    stand
        .get(&format!("{PATH}/a%20b"))
        .await
        .refused(422, "bad_name");
    stand
        .get(&format!("{PATH}/%ff"))
        .await
        .refused(400, "bad_path");
    let id = stand.post(PATH, &json!({})).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(id.len(), 32);
}

#[tokio::test]
async fn lists_go_page_by_page() {
    let stand = Stand::new().await;
    for n in 0..7 {
        let resource = if n < 2 { "ada" } else { "bob" };
        stand
            .post(
                PATH,
                &json!({"id": format!("c{n}"), "resource": resource, "title": format!("T{n}")}),
            )
            .await
            .ok();
    }
    let mut seen = Vec::new();
    let mut query = "?limit=3".to_owned();
    loop {
        let page = stand.get(&format!("{PATH}{query}")).await.ok();
        let ids = page["conversations"].as_array().unwrap().iter();
        seen.extend(ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        assert_eq!(page["more"], page["next"].is_string());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query = format!("?limit=3&after={next}");
    }
    seen.sort();
    assert_eq!(seen, ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
    let of = async |query: &str| {
        let page = stand.get(&format!("{PATH}?{query}")).await.ok();
        page["conversations"].as_array().unwrap().len()
    };
    assert_eq!(of("resource=ada").await, 2);
    assert_eq!(of("title=t3").await, 1);
    assert_eq!(of("updated_before=0").await, 0);
}

#[tokio::test]
async fn bad_limits_and_cursors_are_refused() {
    let stand = Stand::new().await;
    for query in [
        "limit=-1",
        "limit=0",
        "limit=501",
        "limit=1000000000",
        "limit=9223372036854775808",
        "offset=1",
        "limit=x",
    ] {
        stand
            .get(&format!("{PATH}?{query}"))
            .await
            .refused(400, "bad_query");
    }
    for cursor in ["", "x", "AAAAAAAAAAAAAAAA", "eyJhIjoxfQ", "%00"] {
        stand
            .get(&format!("{PATH}?after={cursor}"))
            .await
            .refused(400, "bad_cursor");
    }
}

#[tokio::test]
async fn metadata_filters_are_values_and_nothing_else() {
    let stand = Stand::new().await;
    stand
        .post(
            PATH,
            &json!({"id": "a", "metadata": {"plan": "x') OR '1'='1", "n": 2}}),
        )
        .await
        .ok();
    let find = async |filter: &str| stand.find(PATH, &[("metadata", filter)]).await;
    let found = async |filter: &str| {
        find(filter).await.ok()["conversations"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(found(r#"{"plan": "x') OR '1'='1"}"#).await, 1);
    assert_eq!(found(r#"{"plan": "y') OR '1'='1"}"#).await, 0);
    assert_eq!(found(r#"{"n": 2}"#).await, 1);
    assert_eq!(found(r#"{"n": 2, "plan": "x"}"#).await, 0);
    for filter in [
        r#"{"n": {"$gt": 1}}"#,
        r#"{"n": [2]}"#,
        r#"{"$.a[*]": 1}"#,
        r#"{"": 1}"#,
        r#"{"n') OR 1=1 --": 1}"#,
        "[]",
        "1",
        "",
        &format!(r#"{{"{}": 1}}"#, "k".repeat(10_000)),
    ] {
        find(filter).await.refused(400, "bad_query");
    }
}
