//! Resources: listed page by page, read as text.

use contexture_mcp::Access;
use rmcp::model::PaginatedRequestParams;

use crate::support::{Client, SMALL, ada, empty, recorded, small};

#[tokio::test]
async fn conversations_are_resources() {
    let client = Client::recorded().await;
    let listed = client.peer.list_all_resources().await.unwrap();
    assert_eq!(listed.len(), 3);
    for resource in &listed {
        let text = client.resource(&resource.uri).await.unwrap();
        assert!(text.contains(" user "), "{}: {text:.200}", resource.uri);
        assert!(text.chars().count() < 60_000, "{}", resource.uri);
    }
    let text = client
        .resource("contexture://conversation/small")
        .await
        .unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("[1 user 1970-01-01T00:00:"), "{first}");
    assert!(
        text.contains("characters in all: read_link context://vfs/"),
        "{text}"
    );
    assert!(
        listed
            .iter()
            .any(|one| one.name == SMALL && one.title.as_deref() == Some("Small"))
    );
}

#[tokio::test]
async fn what_is_not_shown_of_a_long_conversation_is_said() {
    let engine = recorded().await;
    let chat = engine
        .conversation("long")
        .owner("acme/ada")
        .open()
        .await
        .unwrap();
    let said = (0..150).map(|n| contexture::user(format!("word {n}")));
    chat.save(said).await.unwrap();
    let client = Client::of(&engine, Access::Read).await;
    let text = client
        .resource("contexture://conversation/long")
        .await
        .unwrap();
    let first = text.lines().next().unwrap();
    let expected = "[items before 51 of 150 are not shown: read_conversation with conversation \"long\" and from 1]";
    assert_eq!(first, expected);
    assert!(text.ends_with("word 149\n\n"), "{text}");
}

#[tokio::test]
async fn the_list_goes_on_with_a_cursor() {
    let engine = empty();
    for n in 0..105 {
        small(&engine, &ada(), &format!("c{n}"), "x").await;
    }
    let client = Client::of(&engine, Access::Read).await;
    let first = client.peer.list_resources(None).await.unwrap();
    assert_eq!(first.resources.len(), 100);
    let more = PaginatedRequestParams::default().with_cursor(first.next_cursor);
    let second = client.peer.list_resources(Some(more)).await.unwrap();
    assert_eq!((second.resources.len(), second.next_cursor), (5, None));
    for cursor in ["", "x", "9~../a"] {
        let forged = PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned()));
        let error = client.peer.list_resources(Some(forged)).await.unwrap_err();
        assert!(error.to_string().contains("-32602"), "{error}");
    }
    let templates = client.peer.list_all_resource_templates().await.unwrap();
    let templates: Vec<_> = templates
        .iter()
        .map(|one| one.uri_template.as_str())
        .collect();
    let expected = [
        "contexture://conversation/{id}",
        "context://vfs/{hash}{?conversation}",
    ];
    assert_eq!(templates, expected);
}
