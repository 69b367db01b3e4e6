//! Moving about: branches, checkpoints, owners.

use contexture_engine::EngineError;
use contexture_ir::{Raw, Usage};

use crate::support::{answers, asks, branches, chat, engine, texts};

#[tokio::test]
async fn rewinding_opens_branches_with_the_names_people_expect() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b"), asks("u2", "c")])
        .await
        .unwrap();
    let mut names = Vec::new();
    for from in [None, None, Some("main"), Some("main-v2"), Some("main")] {
        if let Some(from) = from {
            chat.switch_branch(from).await.unwrap();
        }
        names.push(chat.rewind("u1").await.unwrap().name.to_string());
    }
    assert_eq!(
        names,
        ["main-v2", "main-v3", "main-v4", "main-v5", "main-v6"]
    );
    assert_eq!(texts(&chat).await, ["a"]);
    assert_eq!(chat.branch().as_str(), "main-v6");
}

#[tokio::test]
async fn aside_branches_leave_the_handle_where_it_is() {
    let chat = chat().await;
    let error = chat.open_side_branch().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot open a branch aside: branch main is empty"
    );
    chat.save([asks("u1", "a")]).await.unwrap();
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(chat.open_side_branch().await.unwrap().name.to_string());
    }
    assert_eq!(names, ["main-v2", "main-v3", "main-v4"]);
    assert_eq!(chat.branch().as_str(), "main");
    assert_eq!(branches(&chat).await.first().unwrap(), "main 1 *");
}

#[tokio::test]
async fn checkpoints_stay_and_are_restored_as_branches() {
    let chat = chat().await;
    assert!(matches!(
        chat.checkpoint("x").await,
        Err(EngineError::EmptyBranch { .. })
    ));
    chat.save([asks("u1", "a")]).await.unwrap();
    let first = chat.checkpoint("before the refund").await.unwrap();
    chat.save([answers("a1", "b")]).await.unwrap();
    let taken = chat.checkpoint("before the refund").await.unwrap_err();
    assert_eq!(taken.kind(), "already_exists");
    let branch = chat.restore("before the refund").await.unwrap();
    assert_eq!(
        (branch.name.as_str(), branch.head),
        ("main-v2", Some(first.node))
    );
    assert_eq!(texts(&chat).await, ["a"]);
    assert_eq!(
        chat.restore("nothing").await.unwrap_err().kind(),
        "not_found"
    );
}

#[tokio::test]
async fn clearing_starts_anew_and_loses_nothing() {
    let chat = chat().await;
    chat.save([asks("u1", "a")]).await.unwrap();
    chat.clear().await.unwrap();
    assert_eq!(texts(&chat).await, Vec::<String>::new());
    chat.save([asks("u1", "again")]).await.unwrap();
    assert_eq!(texts(&chat).await, ["again"]);
    chat.switch_branch("main").await.unwrap();
    assert_eq!(texts(&chat).await, ["a"]);
}

#[tokio::test]
async fn two_handles_see_the_same() {
    let engine = engine();
    let one = engine.conversation("c").open().await.unwrap();
    let two = engine.conversation("c").open().await.unwrap();
    one.save([asks("u1", "a")]).await.unwrap();
    two.save([answers("a1", "b")]).await.unwrap();
    assert_eq!(texts(&one).await, ["a", "b"]);
}

#[tokio::test]
async fn strangers_see_nothing() {
    let engine = engine();
    let mine = engine
        .conversation("c")
        .owner("acme/ada")
        .open()
        .await
        .unwrap();
    mine.save([asks("u1", "a")]).await.unwrap();
    let theirs = engine
        .conversation("c")
        .owner("acme/bob")
        .open_existing()
        .await
        .unwrap_err();
    assert_eq!(theirs.kind(), "not_found");
    let theirs = engine
        .conversation("c")
        .owner("acme/bob")
        .open()
        .await
        .unwrap();
    assert_eq!(texts(&theirs).await, Vec::<String>::new());
    assert_eq!(theirs.rewind("u1").await.unwrap_err().kind(), "not_found");
}

#[tokio::test]
async fn metadata_and_usage() {
    let engine = engine();
    let open = || engine.conversation("c").title("T");
    let chat = open()
        .metadata("a", Raw::parse("1").unwrap())
        .open()
        .await
        .unwrap();
    open()
        .metadata("b", Raw::parse("2").unwrap())
        .open()
        .await
        .unwrap();
    chat.set_metadata("a", None).await.unwrap();
    chat.set_title(Some("Other")).await.unwrap();
    let usage = Usage {
        input_tokens: Some(3),
        output_tokens: Some(2),
        ..Usage::default()
    };
    chat.track_usage(&usage).await.unwrap();
    chat.track_usage(&Usage {
        input_tokens: Some(4),
        ..Usage::default()
    })
    .await
    .unwrap();
    let record = chat.info().await.unwrap();
    assert_eq!(record.title.as_deref(), Some("Other"));
    let shown: Vec<String> = record
        .metadata
        .iter()
        .map(|(key, value)| format!("{key}={}", value.get()))
        .collect();
    assert_eq!(
        shown,
        ["b=2", r#"usage={"input_tokens":7,"output_tokens":2}"#]
    );
}

#[tokio::test]
async fn usage_goes_on_after_an_import_and_overwrites_nothing() {
    let usage = Usage {
        input_tokens: Some(1),
        cache_read_tokens: Some(1),
        ..Usage::default()
    };
    // As chats of `@deepagents/context` keep it, of older and newer versions of the SDK.
    let flat = r#"{"inputTokens":5,"outputTokens":6,"totalTokens":11,"cachedInputTokens":3,"reasoningTokens":2}"#;
    let nested = r#"{"inputTokens":5,"inputTokenDetails":{"cacheReadTokens":3,"cacheWriteTokens":4},
        "outputTokens":6,"outputTokenDetails":{"reasoningTokens":2},"totalTokens":11,"cachedInputTokens":3,"raw":{"a":1}}"#;
    for (imported, write) in [(flat, None), (nested, Some(4))] {
        let chat = chat().await;
        let imported = Raw::parse(imported).unwrap();
        chat.set_metadata("usage", Some(imported)).await.unwrap();
        for _ in 0..2 {
            chat.track_usage(&usage).await.unwrap();
        }
        let sums: serde_json::Value = chat.info().await.unwrap().metadata["usage"]
            .parse_as()
            .unwrap();
        let sum = |name: &str| sums.get(name).and_then(serde_json::Value::as_u64);
        assert_eq!(sum("input_tokens"), Some(7));
        assert_eq!(sum("output_tokens"), Some(6));
        assert_eq!(sum("total_tokens"), Some(11));
        assert_eq!(sum("cache_read_tokens"), Some(5));
        assert_eq!(sum("cache_write_tokens"), write);
        assert_eq!(sum("reasoning_tokens"), Some(2));
        assert_eq!(sum("inputTokens").or(sum("cachedInputTokens")), None);
    }
    for own in [r#""text""#, "[1]", r#"{"input_tokens":"many"}"#] {
        let chat = chat().await;
        chat.set_metadata("usage", Some(Raw::parse(own).unwrap()))
            .await
            .unwrap();
        let refused = chat.track_usage(&usage).await.unwrap_err();
        assert_eq!(refused.kind(), "not_usage", "{refused}");
        assert_eq!(chat.info().await.unwrap().metadata["usage"].get(), own);
    }
}

#[tokio::test]
async fn names_are_checked() {
    let engine = engine();
    for bad in ["", "a b", "../x"] {
        assert_eq!(
            engine.conversation(bad).open().await.unwrap_err().kind(),
            "bad_name",
            "{bad}"
        );
    }
    let chat = chat().await;
    assert_eq!(
        chat.switch_branch("nowhere").await.unwrap_err().kind(),
        "not_found"
    );
    assert_eq!(
        chat.rewind("nothing").await.unwrap_err().kind(),
        "not_found"
    );
}
