//! Keys, cookies, foreign pages, foreign owners, and what a page may load.

use reqwest::StatusCode;
use serde_json::json;

use super::{Browser, page};
use crate::keys::key;
use crate::messages::talk;
use crate::test_support::Stand;

/// Paths of all kinds of answers.
const PATHS: [&str; 8] = [
    "/ui/",
    "/ui/c/a",
    "/ui/c/none",
    "/ui/money",
    "/ui/runs",
    "/ui/skills",
    "/ui/c/a/bands.json",
    "/ui/nowhere",
];

#[tokio::test]
async fn pages_need_a_key_where_the_api_needs_one() {
    let (secret, lines) = key("ada", "acme/ada", &["read"]);
    let mut stand = Stand::with(&lines).await;
    let mut browser = Browser::new(&stand);
    for path in PATHS {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(
            answer.text.contains("name=\"key\""),
            "{path}: {}",
            answer.text
        );
    }
    let refused = browser.sign_in("ctx_wrong").await;
    assert_eq!(
        (refused.status, browser.cookie.as_deref()),
        (StatusCode::UNAUTHORIZED, None)
    );
    // The key itself is no cookie, and no script sees the cookie.
    let answer = browser.sign_in(&secret).await;
    assert_eq!(
        (answer.status, &answer.headers["location"]),
        (StatusCode::SEE_OTHER, &"/ui/money".parse().unwrap())
    );
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict")
            && cookie.contains("Path=/ui;")
            && !cookie.contains(&secret)
    );
    assert!(page(&browser.get("/ui/").await).contains("acme/ada"));
    // The cookie is for pages; the API wants the key.
    stand.as_bearer(browser.cookie.as_deref());
    stand
        .get("/api/v1/conversations")
        .await
        .refused(401, "unauthenticated");
    let elsewhere = browser
        .post(
            "/ui/sign-in",
            &[("key", &secret), ("next", "//evil.example/")],
        )
        .await;
    assert_eq!(elsewhere.headers["location"], "/ui/");
    browser.post("/ui/sign-out", &[]).await;
    assert_eq!(browser.get("/ui/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn other_owners_do_not_exist_on_pages() {
    let (ada, first) = key("ada", "ada", &["read", "write"]);
    let (bob, second) = key("bob", "bob", &["read"]);
    let mut stand = Stand::with(&[first, second].concat()).await;
    stand.as_bearer(Some(&ada));
    talk(&stand, "a", &["my secret parcel"]).await;
    let mut browser = Browser::new(&stand);
    browser.sign_in(&bob).await;
    for path in ["/ui/", "/ui/?q=parcel", "/ui/runs", "/ui/money"] {
        assert!(
            !page(&browser.get(path).await).contains("secret parcel"),
            "{path}"
        );
    }
    // What belongs to somebody else and what is not there are the same page.
    for (foreign, missing) in [
        ("/ui/c/a", "/ui/c/b"),
        ("/ui/c/a/memory", "/ui/c/b/memory"),
        ("/ui/c/a/bands.json", "/ui/c/b/bands.json"),
    ] {
        let (one, two) = (browser.get(foreign).await, browser.get(missing).await);
        assert_eq!(
            (one.status, one.text.len()),
            (two.status, two.text.len()),
            "{foreign}"
        );
        assert!(!one.text.contains("secret parcel"), "{foreign}");
    }
    assert_eq!(browser.get("/ui/c/a").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_form_needs_its_own_page_its_token_and_the_scope() {
    let (writer, first) = key("writer", "ada", &["read", "write"]);
    let (reader, second) = key("reader", "ada", &["read"]);
    let stand = {
        let mut stand = Stand::with(
            &[
                first,
                second,
                "[server]\ninspector = \"write\"\n".to_owned(),
            ]
            .concat(),
        )
        .await;
        stand.as_bearer(Some(&writer));
        stand
    };
    talk(&stand, "a", &["one", "two"]).await;
    let log = stand.get("/api/v1/conversations/a/log").await.ok();
    let node = log["entries"][1]["id"].as_str().unwrap();
    let branches = async || {
        stand.get("/api/v1/conversations/a/branches").await.ok()["branches"]
            .as_array()
            .unwrap()
            .len()
    };

    let mut browser = Browser::new(&stand);
    browser.sign_in(&writer).await;
    let token = browser.token("/ui/c/a").await.unwrap();
    let rewind = async |browser: &Browser, token: &str| {
        let fields = [("node", node), ("token", token)];
        browser.post("/ui/c/a/rewind", &fields).await.status
    };
    assert_eq!(rewind(&browser, "").await, StatusCode::FORBIDDEN);
    assert_eq!(
        rewind(&browser, &format!("{token}x")).await,
        StatusCode::FORBIDDEN
    );
    for site in ["cross-site", "same-site", "none"] {
        browser.site = site;
        assert_eq!(
            rewind(&browser, &token).await,
            StatusCode::FORBIDDEN,
            "{site}"
        );
    }
    browser.site = "same-origin";
    // Another session's token is as good as none.
    let mut other = Browser::new(&stand);
    other.sign_in(&writer).await;
    assert_eq!(rewind(&other, &token).await, StatusCode::FORBIDDEN);
    let mut looking = Browser::new(&stand);
    looking.sign_in(&reader).await;
    assert_eq!(looking.token("/ui/c/a").await, None);
    assert_eq!(rewind(&looking, &token).await, StatusCode::FORBIDDEN);
    assert_eq!(branches().await, 1);
    assert_eq!(rewind(&browser, &token).await, StatusCode::SEE_OTHER);
    assert_eq!(branches().await, 2);
}

#[tokio::test]
async fn pages_only_read_where_keys_are_unless_configured() {
    let (secret, lines) = key("ada", "ada", &["read", "write"]);
    let mut stand = Stand::with(&lines).await;
    stand.as_bearer(Some(&secret));
    talk(&stand, "a", &["one"]).await;
    let mut browser = Browser::new(&stand);
    browser.sign_in(&secret).await;
    assert_eq!(browser.token("/ui/c/a").await, None);
    assert!(page(&browser.get("/ui/c/a").await).contains("read only"));
    // Without keys the machine's own user may write, and a foreign page may do nothing.
    let stand = Stand::new().await;
    talk(&stand, "a", &["one"]).await;
    let mut browser = Browser::new(&stand);
    assert!(browser.token("/ui/c/a").await.is_some());
    browser.site = "cross-site";
    assert_eq!(browser.get("/ui/c/a").await.status, StatusCode::FORBIDDEN);
    let stand = Stand::with("[server]\ninspector = \"off\"\n").await;
    assert_ne!(
        Browser::new(&stand).get("/ui/").await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_page_loads_nothing_but_the_servers_own_files() {
    let stand = Stand::new().await;
    let script = "<script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}gnp.exe";
    talk(&stand, "a", &[script, script]).await;
    let browser = Browser::new(&stand);
    for path in PATHS.into_iter().chain([
        "/ui/?q=%3Cscript%3E",
        "/ui/c/a?branch=%3Cscript%3E",
        "/ui/compare?a=%3Cb%3E",
    ]) {
        let answer = browser.get(path).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        assert_eq!(
            answer.headers["x-content-type-options"], "nosniff",
            "{path}"
        );
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        if answer.headers["content-type"] != "text/html; charset=utf-8" {
            continue;
        }
        let scripts: Vec<&str> = answer.text.split("<script").skip(1).collect();
        assert!(
            scripts.len() == 1 && scripts[0].starts_with(" type=\"module\" src=\"/ui/assets/"),
            "{path}"
        );
        for inline in [
            " style=",
            "<style",
            "<img src=x",
            "\u{202e}",
            "http://",
            "https://",
        ] {
            assert!(!answer.text.contains(inline), "{path}: {inline}");
        }
        // What it loads is there, to be kept for ever.
        for file in answer.text.split("\"/ui/assets/").skip(1) {
            let file = file.split('"').next().unwrap();
            let loaded = browser.get(&format!("/ui/assets/{file}")).await;
            assert_eq!(loaded.status, StatusCode::OK, "{file}");
            assert!(
                loaded.headers["cache-control"]
                    .to_str()
                    .unwrap()
                    .contains("immutable")
            );
        }
        assert!(answer.text.len() < 150_000, "{path}");
    }
    let node = stand.get("/api/v1/conversations/a/items").await.ok()["items"][0]["id"].clone();
    let item = browser
        .get(&format!("/ui/c/a/item/{}", node.as_str().unwrap()))
        .await;
    assert_eq!(item.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(json!(item.status.as_u16()), 200);
}

#[tokio::test]
async fn a_session_is_renewed_by_use_and_its_end_is_told() {
    let (secret, lines) = key("ada", "ada", &["read"]);
    let mut stand = Stand::with(&lines).await;
    stand.as_bearer(Some(&secret));
    let mut browser = Browser::new(&stand);
    let fresh = browser.get("/ui/money").await;
    assert!(
        !fresh.text.contains("You have been signed out"),
        "{}",
        fresh.text
    );
    browser.sign_in(&secret).await;
    let cookie = browser.cookie.clone().unwrap();
    for path in ["/ui/", "/ui/money", "/ui/c/none/bands.json"] {
        let answer = browser.get(path).await;
        let renewed = answer.headers["set-cookie"].to_str().unwrap();
        assert!(
            renewed.starts_with(&format!("{cookie}; ")),
            "{path}: {renewed}"
        );
        assert!(
            renewed.contains("Max-Age=43200") && renewed.contains("; HttpOnly; SameSite=Strict"),
            "{path}: {renewed}"
        );
    }
    // A cookie of a server that was restarted since.
    let other = {
        let mut other = Browser::new(&stand);
        other.cookie = Some("contexture_session=of-another-server".to_owned());
        other
    };
    let ended = other.get("/ui/money?since=7d").await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
    assert!(ended.headers.get("set-cookie").is_none());
    assert!(
        ended.text.contains("You have been signed out")
            && ended.text.contains("value=\"/ui/money?since=7d\""),
        "{}",
        ended.text
    );
    // Where nobody signs in there is nothing to renew.
    let open = Stand::new().await;
    let answer = Browser::new(&open).get("/ui/").await;
    assert!(answer.headers.get("set-cookie").is_none());
}
