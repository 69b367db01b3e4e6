//! Tools that read, on recorded sessions.

use contexture::user;
use contexture_mcp::Access;
use serde_json::{Value, json};

use crate::support::{AIRLINE, CODING, Client, SMALL, ada, empty, recorded, text};

fn ids<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one[field].as_str().unwrap()).collect()
}

#[tokio::test]
async fn conversations_are_listed_page_by_page() {
    let client = Client::recorded().await;
    let all = client.ask("list_conversations", json!({})).await;
    let all: Vec<&str> = ids(&all["conversations"], "id");
    assert_eq!(all.len(), 3);
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = json!({ "limit": 1, "cursor": cursor });
        let page = match &cursor {
            Value::Null => json!({ "limit": 1 }),
            _ => page,
        };
        let page = client.ask("list_conversations", page).await;
        seen.extend(
            ids(&page["conversations"], "id")
                .into_iter()
                .map(str::to_owned),
        );
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, all);
    let about = client
        .ask("list_conversations", json!({ "resource": "mia" }))
        .await;
    assert_eq!(ids(&about["conversations"], "id"), [AIRLINE]);
    let titled = client
        .ask("list_conversations", json!({ "title": "SMALL" }))
        .await;
    assert_eq!(ids(&titled["conversations"], "id"), [SMALL]);
}

#[tokio::test]
async fn what_was_said_is_found_and_read_around() {
    let client = Client::recorded().await;
    let query = json!({ "query": "mia_li_3668", "kinds": ["user"] });
    let found = client.ask("search_conversations", query).await;
    let hit = &found["hits"][0];
    assert_eq!(text(hit, "conversation"), AIRLINE);
    assert!(text(hit, "text").contains("my user ID is mia_li_3668"));
    let around = json!({ "conversation": AIRLINE, "around": text(hit, "id"), "limit": 3 });
    let page = client.ask("read_conversation", around).await;
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert_eq!(items[1]["id"], hit["id"]);
    assert!(text(&items[0], "text").contains("I'll need your user ID"));

    let one = json!({ "query": "flight", "limit": 1 });
    let first = client.ask("search_conversations", one).await;
    let next = json!({ "query": "flight", "limit": 1, "cursor": first["next_cursor"] });
    let second = client.ask("search_conversations", next).await;
    assert_ne!(first["hits"][0]["id"], second["hits"][0]["id"]);
    assert_eq!(first["complete"], json!(true));
    let nowhere = json!({ "query": "flight", "conversation": CODING });
    let nowhere = client.ask("search_conversations", nowhere).await;
    assert_eq!(nowhere["hits"], json!([]));
}

/// A question finds its answer, the newer of two statements first, and the older says what replaced it.
#[tokio::test]
async fn a_question_finds_what_is_so_now() {
    let engine = empty();
    let chat = engine.conversation("office").owner(ada().as_str());
    let chat = chat.open().await.unwrap();
    for said in ["Hello.", "My office is Oslo.", "My office is Bergen."] {
        chat.save([user(said)]).await.unwrap();
    }
    let client = Client::of(&engine, Access::Read).await;
    let asked = json!({ "query": "Which office do I have?", "around": 1 });
    let found = client.ask("search_conversations", asked).await;
    let hits = &found["hits"];
    assert_eq!(
        (text(&hits[0], "text"), text(&hits[1], "text")),
        ("My office is Bergen.", "My office is Oslo.")
    );
    assert_eq!(hits[1]["replaced_by"], hits[0]["id"], "{found}");
    assert!(hits[1]["until"].is_string() && hits[0].get("until").is_none());
    assert_eq!(text(&hits[1]["before"][0], "text"), "Hello.");
    // At the older one, the newer was not known.
    let then = json!({ "query": "office", "conversation": "office", "at": hits[1]["id"] });
    let then = client.ask("search_conversations", then).await;
    assert_eq!(then["hits"].as_array().unwrap().len(), 1, "{then}");
    assert!(then["hits"][0].get("until").is_none(), "{then}");
    let apart = json!({ "query": "\"my office\" zebra", "all_words": true });
    let apart = client.ask("search_conversations", apart).await;
    assert_eq!(
        apart["apart"],
        json!([{"word": "\"my office\"", "hits": 2}, {"word": "zebra", "hits": 0}])
    );
}

#[tokio::test]
async fn every_item_is_read_once_page_by_page() {
    let client = Client::recorded().await;
    for id in [CODING, AIRLINE] {
        let last = client
            .ask("read_conversation", json!({ "conversation": id }))
            .await;
        let total = last["total"].as_u64().unwrap();
        let mut from = Some(1);
        let mut positions = Vec::new();
        while let Some(first) = from {
            let page = json!({ "conversation": id, "from": first, "limit": 7 });
            let page = client.ask("read_conversation", page).await;
            let items = page["items"].as_array().unwrap().iter();
            positions.extend(items.map(|item| item["position"].as_u64().unwrap()));
            from = page["later"].as_u64();
        }
        assert_eq!(positions, (1..=total).collect::<Vec<_>>(), "{id}");
        let items = last["items"].as_array().unwrap();
        assert_eq!(items.last().unwrap()["position"], json!(total));
    }
}

#[tokio::test]
async fn a_page_is_bounded_and_what_was_cut_can_be_read() {
    let client = Client::recorded().await;
    let mut cut = 0;
    for from in [1, 31] {
        let page = json!({ "conversation": CODING, "from": from, "limit": 100 });
        let result = client
            .call("read_conversation", page.clone())
            .await
            .unwrap();
        let links: Vec<_> = result
            .content
            .iter()
            .filter_map(|block| block.as_resource_link())
            .collect();
        let page = client.ask("read_conversation", page).await;
        let mut characters = 0;
        for item in page["items"].as_array().unwrap() {
            let shown = text(item, "text");
            characters += shown.chars().count();
            let Some(link) = item["link"].as_str() else {
                assert!(item["characters"].is_null());
                continue;
            };
            assert!(shown.ends_with('…'));
            let whole = json!({ "link": link, "conversation": CODING });
            let whole = client.ask("read_link", whole).await;
            assert_eq!(whole["characters"], item["characters"]);
            assert_eq!(whole["id"], item["id"]);
            let shown = shown.strip_suffix('…').unwrap();
            assert!(text(&whole["part"], "text").starts_with(shown));
            let linked = links
                .iter()
                .find(|resource| resource.uri.starts_with(link))
                .unwrap();
            let read = client.resource(&linked.uri).await.unwrap();
            assert!(read.starts_with(text(&whole["part"], "text")));
            cut += 1;
        }
        assert!(characters <= 24_000 + 100 * 161, "{characters}");
    }
    assert!(cut > 0, "nothing was cut");
}

#[tokio::test]
async fn a_link_is_read_by_lines_by_its_end_and_by_what_it_says() {
    let client = Client::recorded().await;
    let page = client
        .ask("read_conversation", json!({ "conversation": SMALL }))
        .await;
    let items = page["items"].as_array().unwrap();
    let link = items.iter().find_map(|item| item["link"].as_str()).unwrap();
    let read = async |more: Value| {
        let mut arguments = json!({ "link": link, "conversation": SMALL });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        client.ask("read_link", arguments).await
    };

    let mut whole = String::new();
    let mut next = json!({});
    let lines = loop {
        let part = read(next).await;
        whole.push_str(text(&part["part"], "text"));
        next = part["next"].clone();
        if next.is_null() {
            break part["lines"].as_u64().unwrap();
        }
    };
    assert_eq!((whole.lines().count() as u64, lines), (5_000, 5_000));
    assert_eq!(whole.lines().nth(4_320), Some("4321: the quick brown fox"));

    let part = read(json!({ "from": 4_321, "lines": 1 })).await;
    assert_eq!(text(&part["part"], "text"), "4321: the quick brown fox\n");
    assert_eq!(part["next"]["from"], json!(4_322));
    let part = read(json!({ "last": 2 })).await;
    assert_eq!(
        text(&part["part"], "text"),
        "4999: nothing\n5000: nothing\n"
    );
    let found = read(json!({ "find": "BROWN", "around": 1 })).await;
    assert_eq!(found["found"]["matches"], json!(1));
    assert_eq!(found["found"]["lines"].as_array().unwrap().len(), 3);
    assert_eq!(found["found"]["lines"][1]["line"], json!(4_321));
    let found = read(json!({ "find": "^1\\d: ", "regex": true, "lines": 4 })).await;
    assert_eq!(
        (&found["found"]["matches"], &found["next"]["from"]),
        (&json!(10), &json!(14))
    );
    let found = read(json!({ "find": "lion" })).await;
    assert_eq!(found["found"], json!({ "matches": 0, "lines": [] }));
}

#[tokio::test]
async fn the_budget_is_what_a_compile_says() {
    let engine = recorded().await;
    let client = Client::of(&engine, Access::Read).await;
    let asked = json!({ "conversation": CODING, "model": "gpt-4.1", "window": 20_000 });
    let budget = client.ask("check_budget", asked).await;
    let chat = engine
        .conversation(CODING)
        .owner("acme/ada")
        .open_existing()
        .await
        .unwrap();
    let target = contexture::Target::openai_responses("gpt-4.1").window(20_000);
    let report = chat.compile(&target).await.unwrap().report;
    assert_eq!(budget["tokens"], json!(report.totals.tokens));
    assert_eq!(budget["limit"], json!(report.target.limit));
    let left = report.target.limit - report.totals.tokens;
    assert_eq!(budget["remaining"], json!(left));
    let rows = budget["segments"].as_array().unwrap().iter();
    let sum: u64 = rows.map(|row| row["tokens"].as_u64().unwrap()).sum();
    assert_eq!(budget["tokens"], json!(sum));

    let small =
        json!({ "conversation": SMALL, "model": "claude-sonnet-4-5", "format": "openai-chat" });
    let small = client.ask("check_budget", small).await;
    assert_eq!(
        (text(&small, "format"), &small["omitted"]),
        ("openai-chat", &json!(0))
    );
}
