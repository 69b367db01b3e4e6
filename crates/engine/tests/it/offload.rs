//! What a payload left out, read again.

use contexture_compile::{Link, READ_TOOL};
use contexture_engine::{Conversation, Engine, EngineError, MessageView};
use contexture_ir::{
    Audience, ContentHash, FunctionCall, FunctionCallOutput, Item, NodeId, Output, Owner,
    assistant_text, user,
};
use contexture_store::{
    AppendPoint, AppendRequest, NewItem, NodeKind, PathEnd, ReadRequest, RedactRequest,
};

use crate::support::engine;

const OUTPUT: &str = "first line\nW8342 is lost\nerror: no such order W8342\nlast line\n";

/// Appends a call of a tool and its output, and gives the output's link.
async fn used(chat: &Conversation, call: &str, tool: &str, text: &str) -> Link {
    let mut draft = chat.draft();
    draft.push_item(FunctionCall::new(call, tool, "{}"));
    draft.push_item(FunctionCallOutput::new(call, Output::Text(text.to_owned())));
    draft.commit().await.unwrap();
    newest(chat).await
}

async fn newest(chat: &Conversation) -> Link {
    let request = ReadRequest::last_nodes(PathEnd::Branch(chat.branch()), 1);
    let store = chat.engine().store();
    let page = store
        .read_path(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    Link::new(page.nodes[0].content_hash)
}

async fn asked(chat: &Conversation, arguments: &str) -> String {
    let answer = chat.read_context(arguments).await.unwrap();
    assert!(!answer.is_error, "{}", answer.text);
    answer.text
}

async fn refused(chat: &Conversation, arguments: &str) -> String {
    let answer = chat.read_context(arguments).await.unwrap();
    assert!(answer.is_error, "{}", answer.text);
    answer.text
}

async fn of(engine: &Engine, owner: &str, id: &str) -> Conversation {
    engine.conversation(id).owner(owner).open().await.unwrap()
}

#[tokio::test]
async fn a_model_reads_what_a_link_names() {
    let chat = of(&engine(), "ada", "c").await;
    chat.save([user("where is it?")]).await.unwrap();
    let link = used(&chat, "c1", "find_order", OUTPUT).await;
    chat.save([assistant_text("lost")]).await.unwrap();
    let linked = chat.resolve_link(link, MessageView::Model).await.unwrap();
    assert_eq!(linked.text, OUTPUT);
    assert!(matches!(linked.item, Item::FunctionCallOutput(_)));
    assert_eq!(
        asked(
            &chat,
            &format!(r#"{{"uri":"{link}","offset":2,"limit":1}}"#)
        )
        .await,
        format!("[{link}: lines 2-2 of 4, 62 characters in all]\nW8342 is lost\n[more: offset 3]")
    );
    assert_eq!(
        asked(&chat, &format!(r#"{{"uri":"{link}","pattern":"w8342"}}"#)).await,
        format!("[{link}: 2 of 2 matching lines]\n2:W8342 is lost\n3:error: no such order W8342")
    );
}

#[tokio::test]
async fn a_model_finds_what_it_remembers_a_word_of() {
    let chat = of(&engine(), "ada", "c").await;
    let first = used(&chat, "c1", "find_order", OUTPUT).await;
    used(&chat, "c2", "list", "W83421 and others").await;
    chat.save([user("what about W8342?")]).await.unwrap();
    let said = newest(&chat).await;
    assert_eq!(
        asked(&chat, r#"{"query":"W8342","limit":2}"#).await,
        format!(
            "[2 found, best first]\n\
             {first} output of find_order, line 2:\nW8342 is lost\n\
             {said} message of the user, line 1:\nwhat about W8342?"
        )
    );
}

#[tokio::test]
async fn looking_for_something_does_not_find_the_looking() {
    let chat = of(&engine(), "ada", "c").await;
    let link = used(&chat, "c1", "find_order", OUTPUT).await;
    for round in ["r1", "r2", "r3"] {
        let call = r#"{"query":"W8342"}"#;
        let answer = asked(&chat, call).await;
        assert!(answer.starts_with("[1 found"), "{answer}");
        assert!(answer.contains(&link.to_string()), "{answer}");
        let mut draft = chat.draft();
        draft.push_item(FunctionCall::new(round, READ_TOOL, call));
        draft.push_item(FunctionCallOutput::new(round, Output::Text(answer)));
        draft.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_link_names_what_is_on_this_path_and_nothing_else() {
    let engine = engine();
    let chat = of(&engine, "ada", "c").await;
    chat.save([user("one")]).await.unwrap();
    let asked_at = chat.save([user("two")]).await.unwrap();
    let link = used(&chat, "c1", "find_order", OUTPUT).await;
    let found = async |chat: &Conversation| chat.resolve_link(link, MessageView::Model).await;
    assert!(found(&chat).await.is_ok());
    for stranger in [
        of(&engine, "ada", "other").await,
        of(&engine, "eve", "c").await,
    ] {
        stranger.save([user("hello")]).await.unwrap();
        let error = found(&stranger).await.unwrap_err();
        assert!(matches!(error, EngineError::NoLink { .. }), "{error}");
        assert_eq!(error.kind(), "not_found");
    }
    // Nor what another branch holds, not even in a search.
    chat.rewind(&asked_at.messages[0]).await.unwrap();
    chat.save([user("three")]).await.unwrap();
    let said = refused(&chat, &format!(r#"{{"uri":"{link}"}}"#)).await;
    assert_eq!(said, format!("{link} is not on this path"));
    assert!(
        asked(&chat, r#"{"query":"W8342"}"#)
            .await
            .starts_with("[nothing found")
    );
}

#[tokio::test]
async fn cached_handle_resolves_links_after_rewind_and_switch() {
    let chat = of(&engine(), "ada", "c").await;
    for round in 0..40 {
        chat.save([user(format!("ask {round}"))]).await.unwrap();
        used(
            &chat,
            &format!("c{round}"),
            "list",
            &format!("output {round}"),
        )
        .await;
    }
    let asked_at = chat.save([user("two")]).await.unwrap();
    let old = used(&chat, "old", "find_order", OUTPUT).await;
    let found = async |link: Link| {
        let linked = chat.resolve_link(link, MessageView::Model).await;
        linked.ok().map(|linked| linked.node.depth)
    };
    let depth = found(old).await.unwrap();
    // The same again, further on: the newest counts.
    assert_eq!(used(&chat, "old", "find_order", OUTPUT).await, old);
    assert_eq!(found(old).await, Some(depth + 2));
    let there = chat.branch();
    chat.rewind(&asked_at.messages[0]).await.unwrap();
    let new = used(&chat, "new", "find_order", "another output").await;
    assert_eq!((found(old).await, found(new).await), (None, Some(depth)));
    chat.switch_branch(there.as_str()).await.unwrap();
    assert_eq!(
        (found(old).await, found(new).await),
        (Some(depth + 2), None)
    );
}

#[tokio::test]
async fn a_link_is_never_a_path() {
    let chat = of(&engine(), "ada", "c").await;
    used(&chat, "c1", "find_order", OUTPUT).await;
    for uri in [
        "context://vfs/../secret.txt",
        "context://vfs/../../../../../../etc/hostname",
        "/etc/hostname",
        "context://vfs/vfs_1700000000000_0123456789abcdef.txt",
    ] {
        let said = refused(&chat, &format!(r#"{{"uri":"{uri}"}}"#)).await;
        assert!(said.contains("is no link: expected"), "{said}");
    }
}

#[tokio::test]
async fn what_was_redacted_is_gone_and_said_so() {
    let chat = of(&engine(), "ada", "c").await;
    let link = used(&chat, "c1", "find_order", OUTPUT).await;
    let node = chat
        .resolve_link(link, MessageView::Model)
        .await
        .unwrap()
        .node
        .id;
    let store = chat.engine().store();
    let request = RedactRequest {
        nodes: vec![node],
        values: Vec::new(),
        blobs: Vec::new(),
        at_ms: 2_000,
    };
    store
        .redact_content(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    let error = chat
        .resolve_link(link, MessageView::Model)
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::NoLink { .. }), "{error}");
    let tombstone = newest(&chat).await;
    let error = chat
        .resolve_link(tombstone, MessageView::Model)
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Evicted { .. }), "{error}");
    let said = refused(&chat, &format!(r#"{{"uri":"{tombstone}"}}"#)).await;
    assert!(said.ends_with("was removed"), "{said}");
    assert!(
        asked(&chat, r#"{"query":"redacted"}"#)
            .await
            .starts_with("[nothing found")
    );
}

#[tokio::test]
async fn what_models_may_not_see_they_do_not_find() {
    let chat = of(&engine(), "ada", "c").await;
    let item: Item = contexture_ir::Message::text(contexture_ir::Role::User, "aside W8342").into();
    let json = item.to_json();
    let mut new = NewItem::new(NodeId::derive("t", &[b"1"]), &item, json.clone(), 1);
    new.audience = Audience::USER;
    assert_eq!(new.kind, NodeKind::User);
    let at = AppendPoint::Tip {
        branch: chat.branch(),
    };
    let request = AppendRequest::new(at, vec![new], 1);
    let store = chat.engine().store();
    store
        .append_items(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    let link = Link::new(ContentHash::of(json.as_bytes()));
    assert!(chat.resolve_link(link, MessageView::Model).await.is_err());
    assert_eq!(
        chat.resolve_link(link, MessageView::User)
            .await
            .unwrap()
            .text,
        "aside W8342"
    );
    assert_eq!(
        chat.search_path("W8342", 9, MessageView::Model)
            .await
            .unwrap()
            .hits,
        []
    );
    assert_eq!(
        chat.search_path("W8342", 9, MessageView::User)
            .await
            .unwrap()
            .hits
            .len(),
        1
    );
}

#[tokio::test]
async fn a_long_path_is_looked_through_to_its_beginning() {
    let chat = of(&engine(), "ada", "c").await;
    let link = used(&chat, "c1", "find_order", OUTPUT).await;
    for _ in 0..3 {
        let mut draft = chat.draft();
        for n in 0..700 {
            draft.push(user(format!("message {n}")));
        }
        draft.commit().await.unwrap();
    }
    assert_eq!(
        chat.resolve_link(link, MessageView::Model)
            .await
            .unwrap()
            .text,
        OUTPUT
    );
    let answer = asked(&chat, r#"{"query":"no such order W8342"}"#).await;
    assert!(answer.contains(&link.to_string()), "{answer}");
    assert_eq!(chat.owner(), &Owner::new("ada").unwrap());
}

#[tokio::test]
async fn a_model_asks_a_question() {
    let chat = of(&engine(), "ada", "c").await;
    chat.save([user("Our shop in Lyon closes at noon on Sundays.")])
        .await
        .unwrap();
    let said = newest(&chat).await;
    for n in 0..20 {
        let text = format!("And what about the order {n} of that customer?");
        chat.save([user(text), assistant_text("It was sent.")])
            .await
            .unwrap();
    }
    let answer = asked(
        &chat,
        r#"{"query":"when does the Lyon shop close?","limit":1}"#,
    )
    .await;
    assert!(answer.contains(&said.to_string()), "{answer}");
    let answer = asked(&chat, r#"{"query":"\"the order 7\"","limit":5}"#).await;
    assert!(answer.starts_with("[1 found, best first]"), "{answer}");
    let listing: Vec<String> = (0..100).map(|n| format!("line {n} of a listing")).collect();
    used(&chat, "c1", "ls", &listing.join("\n")).await;
    let answer = asked(&chat, r#"{"query":"line 60 of","limit":1}"#).await;
    assert!(
        answer.ends_with("line 61:\nline 60 of a listing"),
        "{answer}"
    );
    // A page of text is no mistake, and an empty query none that ends a run.
    let long = "word ".repeat(5_000);
    for query in [long.as_str(), "", "?!"] {
        let call = serde_json::json!({ "query": query }).to_string();
        asked(&chat, &call).await;
    }
}

#[tokio::test]
async fn what_is_no_longer_so_says_what_replaced_it() {
    let chat = of(&engine(), "ada", "c").await;
    chat.save([user("My office is Oslo.")]).await.unwrap();
    let older = newest(&chat).await;
    chat.save([assistant_text("Noted.")]).await.unwrap();
    chat.save([user("My office is Bergen.")]).await.unwrap();
    let newer = newest(&chat).await;
    let answer = asked(&chat, r#"{"query":"which office do I have"}"#).await;
    let places = [newer, older].map(|link| answer.find(&format!("\n{link}")));
    assert!(places[0].is_some() && places[0] < places[1], "{answer}");
    let note = format!("{older} message of the user, line 1, no longer so: see {newer}:");
    assert!(answer.contains(&note), "{answer}");
}

#[tokio::test]
async fn what_a_preview_leaves_out_is_found_by_its_identifier() {
    let chat = of(&engine(), "ada", "c").await;
    let mut links = Vec::new();
    for n in 0..50 {
        let fill = format!("row of order W{n:05}\n").repeat(300);
        let text = format!("{fill}needle-{n:04}-x\n{fill}");
        links.push(used(&chat, &format!("c{n}"), "list", &text).await);
    }
    for n in [0, 1, 7, 25, 49] {
        let call = format!(r#"{{"query":"needle-{n:04}-x","limit":3}}"#);
        let answer = asked(&chat, &call).await;
        let expected = format!("{} output of list, line 301:\nneedle-{n:04}-x", links[n]);
        assert!(answer.contains(&expected), "{answer}");
    }
}
