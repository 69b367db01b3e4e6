//! Search: any text is a query, never an error; snippets are plain text.

use serde_json::json;

use crate::messages::talk;
use crate::test_support::Stand;

const PATH: &str = "/api/v1/search";

#[tokio::test]
async fn what_was_said_is_found_with_its_place() {
    let stand = Stand::new().await;
    talk(&stand, "a", &["Refund the gloves", "Nothing here"]).await;
    talk(&stand, "b", &["Gloves, two pairs"]).await;
    let found = stand.find(PATH, &[("query", "glov*")]).await.ok();
    assert_eq!(found["hits"].as_array().unwrap().len(), 2);
    assert_eq!(stand.find(PATH, &[("q", "glov*")]).await.ok(), found);
    assert_eq!(
        (&found["more"], &found["complete"]),
        (&json!(false), &json!(true))
    );
    let of = async |more: &[(&str, &str)]| {
        let query: Vec<_> = [("query", "gloves")].iter().chain(more).copied().collect();
        stand.find(PATH, &query).await.ok()["hits"].clone()
    };
    let hits = of(&[("conversation", "a")]).await;
    let text = hits[0]["snippet"]["text"].as_str().unwrap();
    let place = &hits[0]["snippet"]["matches"][0];
    let (start, end) = (
        place[0].as_u64().unwrap() as usize,
        place[1].as_u64().unwrap() as usize,
    );
    assert_eq!(&text[start..end], "gloves");
    assert_eq!(
        of(&[
            ("conversation", "a"),
            ("branch", "main"),
            ("kind", "assistant")
        ])
        .await,
        json!([])
    );
    let first = stand
        .find(PATH, &[("query", "gloves"), ("limit", "1")])
        .await
        .ok();
    let next = first["next"].as_str().unwrap();
    let second = stand
        .find(
            PATH,
            &[("query", "gloves"), ("limit", "1"), ("after", next)],
        )
        .await
        .ok();
    assert_ne!(first["hits"][0]["id"], second["hits"][0]["id"]);
    assert!(second["next"].is_null());
}

#[tokio::test]
async fn any_text_is_a_query() {
    let stand = Stand::new().await;
    talk(
        &stand,
        "a",
        &["c++ foo-bar AND a:b NEAR \"quoted\" 100% it's"],
    )
    .await;
    let probes = [
        "\"",
        "c++",
        "foo-bar",
        "AND",
        "OR",
        "NOT",
        "NEAR(a b)",
        "(",
        ")",
        "a:b",
        "*",
        "",
        "'",
        "a\"b",
        "{a}",
        "^a",
        "x' OR '1'='1",
        "\u{0}",
        "%",
        "_",
        "ß",
        "日本語",
        "🦀",
    ];
    let mut random = fastrand::Rng::with_seed(contexture_store_testkit::test_seed());
    let noise = (0..400).map(|_| {
        (0..random.usize(..40))
            .map(|_| random.char(..))
            .collect::<String>()
    });
    for probe in probes.into_iter().map(str::to_owned).chain(noise) {
        stand.find(PATH, &[("query", &probe)]).await.ok();
    }
    for probe in ["c++", "foo-bar", "AND", "a:b", "it's"] {
        let found = stand.find(PATH, &[("query", probe)]).await.ok();
        assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{probe}");
    }
}

#[tokio::test]
async fn snippets_are_plain_text() {
    let stand = Stand::new().await;
    talk(
        &stand,
        "a",
        &["see <script>alert(1)</script> & <b>bold</b>"],
    )
    .await;
    let found = stand.find(PATH, &[("query", "alert")]).await.ok();
    let snippet = &found["hits"][0]["snippet"]["text"];
    assert_eq!(snippet, "see <script>alert(1)</script> & <b>bold</b>");
}

#[tokio::test]
async fn bad_limits_cursors_and_scopes_are_refused() {
    let stand = Stand::new().await;
    for (name, value, code) in [
        ("limit", "-1", "bad_query"),
        ("limit", "9223372036854775808", "bad_query"),
        ("limit", "1000000000", "bad_query"),
        ("kind", "nothing", "bad_query"),
        ("branch", "main", "bad_query"),
        ("offset", "1000000000", "bad_query"),
        ("after", "forged", "bad_cursor"),
    ] {
        stand
            .find(PATH, &[("query", "x"), (name, value)])
            .await
            .refused(400, code);
    }
    stand.get(PATH).await.refused(400, "bad_query");
    stand
        .find(PATH, &[("query", &"x ".repeat(5000))])
        .await
        .refused(422, "limit");
    stand
        .find(PATH, &[("query", "x"), ("conversation", "none")])
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn hits_come_with_what_stands_beside_them() {
    let stand = Stand::new().await;
    let said = [
        "Hello",
        "My office is Oslo.",
        "Thanks",
        "My office is Bergen.",
        "Bye",
    ];
    talk(&stand, "a", &said).await;
    let around = [("query", "Oslo"), ("conversation", "a"), ("around", "1")];
    let found = stand.find(PATH, &around).await.ok();
    let nearby = &found["hits"][0]["nearby"];
    let texts = |side: &str| -> Vec<String> {
        let items = nearby[side].as_array().unwrap();
        let text = |item: &serde_json::Value| item["text"].as_str().unwrap().to_owned();
        items.iter().map(text).collect()
    };
    assert_eq!(
        (texts("before").len(), texts("after").len()),
        (1, 1),
        "{found}"
    );
    // Without it nothing is loaded, and too much is refused.
    let plain = stand.find(PATH, &[("query", "Oslo")]).await.ok();
    assert!(plain["hits"][0].get("nearby").is_none(), "{plain}");
    for (name, value) in [("around", "11"), ("limit", "51")] {
        let mut query = vec![("query", "Oslo"), ("around", "1")];
        query.retain(|(known, _)| *known != name);
        query.push((name, value));
        stand.find(PATH, &query).await.refused(400, "bad_query");
    }
}

#[tokio::test]
async fn a_search_at_a_node_knows_nothing_of_what_came_later() {
    let stand = Stand::new().await;
    talk(&stand, "a", &["My office is Oslo.", "My office is Bergen."]).await;
    let of = async |more: &[(&str, &str)]| {
        let query = [("query", "which office"), ("conversation", "a")];
        let query: Vec<_> = query.iter().chain(more).copied().collect();
        stand.find(PATH, &query).await.ok()["hits"].clone()
    };
    let now = of(&[]).await;
    assert!(
        now[0]["snippet"]["text"]
            .as_str()
            .unwrap()
            .contains("Bergen"),
        "{now}"
    );
    let oslo = now.as_array().unwrap().iter();
    let oslo = oslo
        .clone()
        .find(|hit| hit["snippet"]["text"].as_str().unwrap().contains("Oslo"));
    let oslo = oslo.unwrap();
    assert!(oslo.get("replaced").is_some(), "{now}");
    let then = of(&[("at", oslo["id"].as_str().unwrap())]).await;
    assert_eq!(then.as_array().unwrap().len(), 1, "{then}");
    assert!(then[0].get("replaced").is_none(), "{then}");
    let alone = [("query", "x"), ("at", "00")];
    stand.find(PATH, &alone).await.refused(400, "bad_query");
}

/// What a person types narrows a search; the store's behaviours have the rules.
#[tokio::test]
async fn operators_narrow_what_is_found() {
    let stand = Stand::new().await;
    talk(&stand, "a", &["Refund the gloves", "Gloves and blue hats"]).await;
    for (query, expected) in [
        ("gloves", 2),
        ("gloves -hats", 1),
        ("gloves -\u{201C}blue hats\u{201D}", 1),
        ("gloves from:user", 2),
        ("gloves from:assistant", 0),
        ("gloves before:2001-01", 0),
        ("gloves after:2090-01", 0),
        ("gloves from:user after:2001-05 -hats", 1),
        ("\"blue hats\"", 1),
        ("\"hats blue\"", 0),
    ] {
        let found = stand.find(PATH, &[("query", query)]).await.ok();
        assert_eq!(found["hits"].as_array().unwrap().len(), expected, "{query}");
    }
    // Where no item has all words, each is counted, a phrase in quotes as one.
    let all = [("query", "\"blue hats\" gloves zebra"), ("all", "true")];
    let found = stand.find(PATH, &all).await.ok();
    assert_eq!(
        found["apart"],
        json!([
            {"word": "\"blue hats\"", "hits": 1},
            {"word": "gloves", "hits": 2},
            {"word": "zebra", "hits": 0},
        ]),
        "{found}"
    );
}
