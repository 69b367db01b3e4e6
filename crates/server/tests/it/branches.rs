//! Branches and checkpoints, and going back.

use reqwest::Method;
use serde_json::json;

use crate::messages::{said, talk};
use crate::test_support::Stand;

#[tokio::test]
async fn branches_are_made_switched_and_deleted() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one"]).await;
    let made = stand
        .post(&format!("{path}/branches"), &json!({"name": "what-if"}))
        .await;
    assert_eq!(
        (made.status.as_u16(), &made.ok()["active"]),
        (201, &json!(false))
    );
    assert_eq!(made.headers["location"], format!("{path}/branches/what-if"));
    stand
        .post(&format!("{path}/branches"), &json!({"name": "what-if"}))
        .await
        .refused(409, "already_exists");
    stand
        .post(&format!("{path}/branches"), &json!({"name": "a b"}))
        .await
        .refused(422, "bad_name");
    stand
        .post(&format!("{path}/messages?branch=what-if"), &said("two"))
        .await
        .ok();
    let branches = stand.get(&format!("{path}/branches")).await.ok();
    assert_eq!(
        (
            &branches["branches"][0]["items"],
            &branches["branches"][1]["items"]
        ),
        (&json!(1), &json!(2))
    );
    let active = stand
        .post(&format!("{path}/branches/what-if/activate"), &json!({}))
        .await
        .ok();
    assert_eq!(active["active"], true);
    let delete = |name: &str| stand.request(Method::DELETE, &format!("{path}/branches/{name}"));
    assert_eq!(stand.send(delete("main")).await.status, 204);
    let refused = stand.send(delete("what-if")).await;
    assert_eq!(refused.problem().0, 422, "{}", refused.text);
    stand.send(delete("main")).await.refused(404, "not_found");
    let at = stand.get(&format!("{path}/items")).await.ok()["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let old = stand
        .post(
            &format!("{path}/branches"),
            &json!({"name": "old", "at": at}),
        )
        .await
        .ok();
    assert_eq!(old["head"], at);
}

#[tokio::test]
async fn going_back_opens_a_branch_there() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["one", "two"]).await;
    let items = stand.get(&format!("{path}/items")).await.ok();
    let (node, message) = (
        items["items"][0]["id"].clone(),
        items["items"][0]["message"].clone(),
    );
    for place in [json!({"node": node}), json!({"message": message})] {
        let branch = stand.post(&format!("{path}/rewind"), &place).await.ok();
        assert_eq!((&branch["head"], &branch["active"]), (&node, &json!(true)));
    }
    let beginning = json!({"beginning": true});
    let empty = stand.post(&format!("{path}/rewind"), &beginning).await.ok();
    assert_eq!(
        (&empty["head"], &empty["active"]),
        (&json!(null), &json!(true))
    );
    for places in [json!({}), json!({"beginning": true, "node": node})] {
        stand
            .post(&format!("{path}/rewind"), &places)
            .await
            .refused(400, "bad_body");
    }
    stand
        .post(&format!("{path}/rewind"), &json!({"message": "none"}))
        .await
        .refused(404, "not_found");
    assert_eq!(
        stand.get(&format!("{path}/items?branch=main")).await.ok()["depth"],
        2
    );
}

#[tokio::test]
async fn checkpoints_name_places_to_come_back_to() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let at = format!("{path}/checkpoints/before");
    let put = || stand.request(Method::PUT, &at);
    stand.send(put()).await.refused(422, "empty_branch");
    stand
        .post(&format!("{path}/messages"), &said("one"))
        .await
        .ok();
    let set = stand.send(put()).await.ok();
    stand
        .post(&format!("{path}/messages"), &said("two"))
        .await
        .ok();
    assert_eq!(
        stand.get(&format!("{path}/checkpoints")).await.ok()["checkpoints"],
        json!([set])
    );
    assert_eq!(stand.get(&at).await.ok(), set);
    // Another place has the name; it is moved only if that is said, and then the answer says from where.
    stand.send(put()).await.refused(409, "already_exists");
    let there = stand.request(Method::PUT, &format!("{at}?move=true"));
    let moved = stand.send(there).await.ok();
    assert_eq!(moved["moved_from"], set["node"]);
    let again = stand.send(put()).await.ok();
    assert_eq!(
        (&again["node"], again.get("moved_from")),
        (&moved["node"], None)
    );
    let set = again;
    let back = stand.post(&format!("{at}/restore"), &json!({})).await;
    assert_eq!(
        (back.status.as_u16(), &back.ok()["head"]),
        (201, &set["node"])
    );
    assert_eq!(
        stand.send(stand.request(Method::DELETE, &at)).await.status,
        204
    );
    stand.get(&at).await.refused(404, "not_found");
    stand
        .post(&format!("{at}/restore"), &json!({}))
        .await
        .refused(404, "not_found");
}
