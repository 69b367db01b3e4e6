//! Whose history is whose, in a database.

use std::sync::Arc;

use contexture::Engine;
use contexture::store_sqlite::SqliteStore;
use contexture_server::NewKey;
use contexture_upstream_testkit::ScriptedProvider;
use serde_json::json;

use super::{Proxied, said, says};

const CHAT: &str = "/v1/chat/completions";

/// Who asks: the place of a key, and what says for whom.
type Asking<'a> = (usize, Option<&'a str>, Option<&'a str>);

#[tokio::test]
async fn conversations_of_owners_and_users_stay_separate_on_restart() {
    let keys = [NewKey::random().unwrap(), NewKey::random().unwrap()];
    let owners = keys.iter().zip(["ada", "bob"]);
    let more: String = owners
        .map(|(key, owner)| {
            let hash = key.hash();
            format!("[[keys]]\nname = \"{owner}\"\nsha256 = \"{hash}\"\nowner = \"{owner}\"\nscopes = [\"proxy\", \"read\"]\n")
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("apart.db");
    let open = || Engine::new(Arc::new(SqliteStore::open(&file).unwrap()));
    let start = || Proxied::to(ScriptedProvider::default(), open(), &more);
    let mut proxied = start().await;
    let everyone: Vec<Asking<'_>> = [0, 1]
        .into_iter()
        .flat_map(|key| {
            [
                (None, None),
                (Some("x"), None),
                (Some("y"), None),
                (None, Some("z")),
                (Some("x"), Some("y")),
            ]
            .map(|(header, field)| (key, header, field))
        })
        .collect();
    let mut history = vec![says("Hello")];
    let mut first: Vec<String> = Vec::new();
    for turn in 0..3 {
        if turn == 2 {
            proxied.stand.stop();
            proxied.stand.stopped().await;
            proxied = start().await;
        }
        let mut ids = Vec::new();
        let mut answered = None;
        for (key, header, field) in &everyone {
            proxied.stand.as_bearer(Some(keys[*key].secret()));
            let mut body = json!({"model": "gpt-4.1", "messages": history});
            if let Some(field) = field {
                body["user"] = json!(field);
            }
            let user = header.map(|user| ("x-contexture-user", user));
            let headers: Vec<(&str, &str)> = user.into_iter().collect();
            let answer = proxied.ask_with(CHAT, &body, &headers).await;
            let outcome = proxied.outcome(&answer).await;
            let expected = if turn == 0 { "new" } else { "prefix" };
            assert_eq!(
                outcome["matched"], expected,
                "turn {turn} of {key} {header:?} {field:?}"
            );
            ids.push(outcome["conversation"].as_str().unwrap().to_owned());
            answered = Some(said(&answer));
        }
        // What is answered follows from what is asked, so all have the same history.
        history.extend([answered.unwrap(), says(&format!("And {turn}?"))]);
        if turn == 0 {
            let mut each = ids.clone();
            each.sort();
            each.dedup();
            assert_eq!(each.len(), everyone.len());
            first = ids;
        } else {
            assert_eq!(ids, first, "turn {turn}");
        }
    }
    for key in &keys {
        proxied.stand.as_bearer(Some(key.secret()));
        let conversations = proxied.conversations().await;
        assert_eq!(conversations.len(), everyone.len() / 2);
        assert!(
            conversations.iter().all(|one| one["items"] == 6),
            "{conversations:?}"
        );
    }
}
