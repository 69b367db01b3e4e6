//! Export and import of conversations.

use std::sync::Arc;

use contexture_ir::{CheckpointName, ContentHash, MessageId, Raw, ResponseId, Role};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BlobId, BranchLabel, ConversationUpdate, EntityKind,
    Error, ExpectedVersion, Export, Import, ImportAll, ImportError, ImportedAll,
    ImportedConversation, KeyScope, MemoryStore, MetadataChange, NewConversation, NewItem,
    NodeQuery, PathEnd, PutEntry, RedactRequest, RefChange, ResponseInputs, ResponseRecord,
    StateChange, StateKey, StatePatch, Store, TitleChange, load_graph,
};

use crate::chat::{Chat, NOW, branch, branch_end, item, message_item, new_branch, node, raw_item};

type Tested = Arc<dyn Store>;

async fn export_text(chat: &Chat) -> String {
    let mut export = Export::new(&*chat.store, &chat.owner, &chat.id)
        .await
        .unwrap();
    let mut text = String::new();
    while let Some(lines) = export.next_lines().await.unwrap() {
        text.push_str(&lines);
    }
    text
}

async fn import_text(
    store: &dyn Store,
    owner: &str,
    text: &str,
) -> Result<ImportedConversation, ImportError> {
    let owner = owner.parse().unwrap();
    let mut import = Import::new(store, &owner);
    for line in text.lines() {
        import.import_line(line).await?;
    }
    import.finish_import().await
}

fn state_key(word: &str) -> StateKey {
    StateKey::new(format!("path/{word}")).unwrap()
}

/// Fills a conversation with data of every kind.
async fn rich_chat(store: Tested) -> Chat {
    let chat = Chat::start(store).await;
    let blob: Arc<[u8]> = Arc::from(&b"\xff\x00 bytes that items name"[..]);
    let named = BlobId::of(&chat.owner, &blob);
    let picture = format!(
        "{{\"url\":\"context://vfs/{named}\",\"not\":\"{:032x}\"}}",
        7
    );
    let call = NewItem {
        message_id: Some(MessageId::new("m 1").unwrap()),
        run: Some(contexture_ir::RunId::derive("run", &[])),
        step: Some(3),
        response: Some(contexture_ir::ResponseId::derive("response", &[])),
        meaning_hash: Some(ContentHash::of(b"meaning")),
        ..message_item(Role::Assistant, "call")
    };
    let answer = NewItem {
        answers: Some(node("call")),
        message_id: call.message_id.clone(),
        ..item("answer")
    };
    let request = AppendRequest {
        blobs: vec![blob],
        patch: StatePatch {
            changes: vec![
                StateChange::put_entry(state_key("notes"), 1, *b"milk"),
                StateChange::put_entry(state_key("binary"), 2, vec![0xff; 6000]),
                StateChange::put_entry(state_key("secret"), 3, *b"a secret value"),
                StateChange::put_entry(state_key("goes"), 1, *b"soon"),
            ],
            from: 1,
        },
        ..AppendRequest::new(
            Chat::at_tip("main"),
            vec![
                item("first"),
                raw_item("picture", &picture),
                raw_item("lines", "{\n  \"role\": \"user\"\n}"),
                raw_item("none", "no JSON at all \u{0} \u{2028}"),
                raw_item("text", "\"a string\""),
                raw_item("exact", r#"{"a":1,"a":2,"n":1e400,"s":"\ud800"}"#),
                call,
                answer,
            ],
            NOW,
        )
    };
    chat.append_request(request).await.unwrap();
    // More nodes than an export reads at a time.
    let many: Vec<NewItem> = (0..300).map(|n| item(&format!("number {n}"))).collect();
    chat.append_to_tip("main", many).await.unwrap();
    let change = StatePatch {
        changes: vec![
            StateChange::remove_entry(state_key("goes")),
            StateChange::put_entry(state_key("notes"), 1, *b"bread"),
        ],
        from: 0,
    };
    let request = AppendRequest {
        patch: change,
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("after")], NOW)
    };
    chat.append_request(request).await.unwrap();
    append_answers(&chat).await;
    for (base, words) in [
        ("number 200", ["fork", "of the fork"]),
        ("fork", ["other", "more"]),
        ("picture", ["early", "side"]),
    ] {
        let name = chat.rewind("main", base, Activation::Activate).await;
        let copy = NewItem {
            copied_from: Some(node("number 201")),
            ..item(words[1])
        };
        chat.append_to_tip(&name, vec![item(words[0]), copy])
            .await
            .unwrap();
    }
    add_refs(&chat).await;
    add_values_and_redactions(&chat).await;
    chat
}

/// Responses with inputs of each kind.
async fn append_answers(chat: &Chat) {
    for (n, inputs) in [
        ResponseInputs::Recorded(Arc::from(&b"\xff inputs"[..])),
        ResponseInputs::Redacted,
        ResponseInputs::None,
    ]
    .into_iter()
    .enumerate()
    {
        let word = format!("answer {n}");
        let id = ResponseId::derive("response", &[word.as_bytes()]);
        let answer = NewItem {
            response: Some(id),
            ..message_item(Role::Assistant, &word)
        };
        let also = NewItem {
            response: Some(id),
            ..message_item(Role::Assistant, &format!("{word}, part two"))
        };
        let record = ResponseRecord {
            model: Some("model".to_owned()),
            usage: Some("{\"a\": 1}".into()),
            inputs,
            ..ResponseRecord::new(id, Some(node("after")), NOW + 7)
        };
        let request = AppendRequest {
            response: Some(record),
            ..AppendRequest::new(Chat::at_tip("main"), vec![answer, also], NOW)
        };
        chat.append_request(request).await.unwrap();
    }
}

/// Inputs of responses are exported, unless a state value was redacted.
pub(super) async fn answers_bring_what_they_were_computed_from(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let mut records = Vec::new();
    for (base, word) in [("a", "b"), ("b", "c"), ("c", "d")] {
        let id = ResponseId::derive("response", &[word.as_bytes()]);
        let inputs = Arc::from(format!("{word} \" inputs").into_bytes());
        let record = ResponseRecord {
            inputs: ResponseInputs::Recorded(inputs),
            ..ResponseRecord::new(id, Some(node(base)), NOW + 7)
        };
        let item = NewItem {
            response: Some(id),
            ..message_item(Role::Assistant, word)
        };
        let request = AppendRequest {
            response: Some(record.clone()),
            ..AppendRequest::new(Chat::at_tip("main"), vec![item], NOW)
        };
        chat.append_request(request).await.unwrap();
        records.push(record);
    }
    let redact = RedactRequest {
        nodes: vec![node("c")],
        at_ms: NOW + 8,
        ..RedactRequest::default()
    };
    let redacted = chat
        .store
        .redact_content(&chat.owner, &chat.id, redact)
        .await;
    assert_eq!(redacted.unwrap().nodes, 1);
    // Only the response whose base is the redacted node has read it.
    records[2].inputs = ResponseInputs::Redacted;
    let text = export_text(&chat).await;
    let other = Chat {
        store: Arc::new(MemoryStore::default()),
        ..chat.clone()
    };
    import_text(&*other.store, "ada", &text).await.unwrap();
    assert!(export_text(&other).await == text);
    for record in records {
        let stored = other.store.load_response(&chat.owner, &chat.id, record.id);
        assert_eq!(stored.await.unwrap(), record);
    }
}

/// Branches and checkpoints of all kinds.
async fn add_refs(chat: &Chat) {
    // A second root, an empty branch, and a deleted branch whose node was copied before.
    let beginning = new_branch(None, BranchLabel::Named(branch("again")), Activation::Keep);
    let request = AppendRequest::new(AppendPoint::New(beginning), vec![item("second")], NOW + 1);
    chat.append_request(request).await.unwrap();
    for name in ["empty", "gone"] {
        let new = new_branch(None, BranchLabel::Named(branch(name)), Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    }
    chat.append_messages("gone", &["lost 1", "lost 2", "lost 3"])
        .await;
    chat.change_ref(RefChange::DeleteBranch(branch("gone")))
        .await
        .unwrap();
    let copy = NewItem {
        copied_from: Some(node("lost 2")),
        ..item("found again")
    };
    chat.append_to_tip("again", vec![copy]).await.unwrap();
    // The first branch was renamed, and another branch has its name now.
    for (from, to) in [("main", "trunk"), ("empty", "main")] {
        let (from, to) = (branch(from), branch(to));
        chat.change_ref(RefChange::RenameBranch { from, to })
            .await
            .unwrap();
    }
    for (name, at) in [("before the fork", "number 200"), ("ünder", "fork")] {
        let set = RefChange::SetCheckpoint {
            name: CheckpointName::new(name).unwrap(),
            node: node(at),
        };
        chat.change_ref(set).await.unwrap();
    }
}

/// Data outside the tree, and redacted data.
async fn add_values_and_redactions(chat: &Chat) {
    let blob = Arc::from(&b"bytes that a value names"[..]);
    let put = chat.store.put_blob(&chat.owner, &chat.id, blob);
    let named = put.await.unwrap().to_string();
    for (key, value) in [
        ("draft", &b"text"[..]),
        ("bytes", b"\xfe\xff"),
        ("names", named.as_bytes()),
    ] {
        let put = PutEntry {
            key: key.to_owned(),
            value: Some(Arc::from(value)),
            expect: ExpectedVersion::Any,
            at_ms: NOW + 3,
        };
        let scope = KeyScope::Conversation(chat.id.clone());
        chat.store
            .put_entry(&chat.owner, &scope, put)
            .await
            .unwrap();
    }
    let redact = RedactRequest {
        nodes: vec![node("number 7"), node("number 8")],
        values: vec![ContentHash::of(b"a secret value")],
        at_ms: NOW + 4,
        ..RedactRequest::default()
    };
    chat.store
        .redact_content(&chat.owner, &chat.id, redact)
        .await
        .unwrap();
    let metadata = [
        ("exact", "{\"b\": 1,\n \"a\": 12345678901234567890123}"),
        ("text", "\"so\""),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), Raw::parse(value).unwrap()));
    let update = ConversationUpdate {
        title: TitleChange::Set(Some("Zürich \"2\"".to_owned())),
        metadata: MetadataChange::Replace(metadata.into()),
        ..ConversationUpdate::new(NOW + 5)
    };
    chat.store
        .update_conversation(&chat.owner, &chat.id, update)
        .await
        .unwrap();
}

/// Returns what readers see, without events and versions, which an export leaves out.
async fn visible_text(chat: &Chat) -> String {
    let tree = load_graph(&*chat.store, &chat.owner, &chat.id)
        .await
        .unwrap();
    let mut text = format!("{:?}\n", tree.refs);
    for one in &tree.nodes {
        let query = NodeQuery::Id(one.id);
        let nodes = chat.store.find_nodes(&chat.owner, &chat.id, query).await;
        let state = contexture_store::StateRequest::all_entries(PathEnd::Node(one.id));
        let state = chat
            .store
            .read_state(&chat.owner, &chat.id, state)
            .await
            .unwrap();
        let entries = state.root.keys().map(|key| (key, state.loaded_value(key)));
        text.push_str(&format!(
            "{:?} {:?}\n",
            nodes.unwrap(),
            entries.collect::<Vec<_>>()
        ));
    }
    text
}

pub(super) async fn what_was_exported_comes_back_equal(store: Tested) {
    let chat = rich_chat(store).await;
    let text = export_text(&chat).await;
    assert!(!text.contains("a secret value"));
    let other = Chat {
        store: Arc::new(MemoryStore::default()),
        ..chat.clone()
    };
    import_text(&*other.store, "ada", &text).await.unwrap();
    assert!(export_text(&other).await == text, "through memory");
    assert_eq!(visible_text(&other).await, visible_text(&chat).await);
    let before = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    // The same id in the same store again, so the conversation has to be deleted first.
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    let imported = import_text(&*chat.store, "ada", &text).await.unwrap();
    assert_eq!((imported.branches, imported.blobs), (6, 2));
    assert!(export_text(&chat).await == text, "through itself");
    assert_eq!(visible_text(&other).await, visible_text(&chat).await);
    let mut after = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    // Unreachable nodes are not exported, and versions and event numbers start again.
    (after.version, after.nodes, after.events) = (before.version, before.nodes, before.events);
    assert_eq!(after, before);
    // The imported conversation can be used like any other.
    chat.append_messages("trunk", &["and on"]).await;
}

/// A batch ends after the node that fills it.
pub(super) async fn an_export_comes_in_pieces(store: Tested) {
    const BLOB: usize = 700 * 1024;
    let chat = Chat::start(store).await;
    for n in 0..6_u8 {
        let blob: Arc<[u8]> = vec![b'a' + n; BLOB].into();
        let named = BlobId::of(&chat.owner, &blob);
        let picture = format!("{{\"url\":\"context://vfs/{named}\"}}");
        let item = raw_item(&format!("picture {n}"), &picture);
        let request = AppendRequest {
            blobs: vec![blob],
            ..AppendRequest::new(Chat::at_tip("main"), vec![item], NOW)
        };
        chat.append_request(request).await.unwrap();
    }
    let mut export = Export::new(&*chat.store, &chat.owner, &chat.id)
        .await
        .unwrap();
    let mut pieces = Vec::new();
    while let Some(lines) = export.next_lines().await.unwrap() {
        pieces.push(lines);
    }
    let longest = pieces.iter().map(String::len).max().unwrap();
    assert!(longest < 3 * BLOB, "{longest} bytes at once");
    let other = MemoryStore::default();
    let imported = import_text(&other, "ada", &pieces.concat()).await.unwrap();
    assert_eq!((imported.nodes, imported.blobs), (6, 6));
}

/// Exports of conversations of one branch, of two, and of none but their first.
async fn export_many() -> Vec<(Chat, String)> {
    let store: Tested = Arc::new(MemoryStore::default());
    let mut exports = Vec::new();
    for n in 0..40 {
        let chat = Chat::start_as(Arc::clone(&store), "ada", &format!("chat-{n}")).await;
        if n % 4 > 0 {
            chat.append_messages("main", &["a", "b"]).await;
        }
        if n % 4 > 1 {
            chat.rewind("main", "a", Activation::Activate).await;
        }
        if n % 4 > 2 {
            chat.append_messages("main-v2", &["c"]).await;
        }
        let text = export_text(&chat).await;
        exports.push((chat, text));
    }
    exports
}

async fn import_all(store: &dyn Store, lines: impl Iterator<Item = &str>) -> ImportedAll {
    let owner = "ada".parse().unwrap();
    let mut import = ImportAll::new(store, &owner);
    for line in lines {
        if import.import_line(line).await.is_break() {
            break;
        }
    }
    import.finish_import().await
}

pub(super) async fn many_conversations_come_back_equal(store: Tested) {
    let exports = export_many().await;
    let lines = exports.iter().flat_map(|(_, text)| text.lines());
    let imported = import_all(&*store, lines).await;
    assert!(imported.error.is_none(), "{:?}", imported.error);
    let ids = imported.conversations.iter().map(|one| &one.id);
    assert!(ids.eq(exports.iter().map(|(chat, _)| &chat.id)));
    for (chat, text) in &exports {
        let other = Chat {
            store: Arc::clone(&store),
            ..chat.clone()
        };
        assert_eq!(export_text(&other).await, *text);
        // The imported conversation can be used like any other.
        other.append_messages("main", &["and on"]).await;
    }
}

pub(super) async fn the_first_refusal_of_many_is_told(store: Tested) {
    let exports = export_many().await;
    let lines: Vec<&str> = exports.iter().flat_map(|(_, text)| text.lines()).collect();
    let ends = (0..lines.len()).filter(|at| lines[*at].starts_with("{\"end\""));
    let ends: Vec<usize> = ends.collect();
    // Of two conversations the ends have wrong sums; the text ends within a third.
    let mut wrong = lines.clone();
    (wrong[ends[7]], wrong[ends[9]]) = (lines[ends[0]], lines[ends[0]]);
    wrong.truncate(ends[11]);
    let imported = import_all(&*store, wrong.into_iter()).await;
    let error = imported.error.unwrap();
    assert_eq!(error.line, ends[7] as u64 + 1, "{error:?}");
    let stored = |n: usize| {
        let id = &exports[n].0.id;
        imported.conversations.iter().any(|one| one.id == *id)
    };
    assert!((0..7).all(stored), "those before it are stored");
    assert!(![7, 9, 11].into_iter().any(stored));
    for (n, (chat, _)) in exports.iter().enumerate() {
        let found = store.load_conversation(&chat.owner, &chat.id).await;
        assert_eq!(found.is_ok(), stored(n), "{n}: {found:?}");
    }
}

async fn expect_refusal(store: &dyn Store, text: &str) -> ImportError {
    let error = import_text(store, "ada", text).await.unwrap_err();
    let left = store
        .load_conversation(&"ada".parse().unwrap(), &"chat".parse().unwrap())
        .await;
    let gone = matches!(
        left,
        Err(Error::NotFound {
            what: EntityKind::Conversation,
            ..
        })
    );
    assert!(gone, "something is left: {left:?} after {error:?}");
    error
}

pub(super) async fn a_changed_text_is_refused_and_leaves_nothing(store: Tested) {
    let chat = Chat::start(Arc::new(MemoryStore::default())).await;
    chat.append_messages("main", &["a", "b"]).await;
    chat.rewind("main", "a", Activation::Keep).await;
    chat.append_messages("main-v2", &["c"]).await;
    let text = export_text(&chat).await;
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.join("\n");
    assert_eq!(lines.len(), 7);
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        let mut other = lines.clone();
        let changed = lines[at].replacen("00000", "00001", 1);
        other[at] = &changed;
        let half = &lines[at][..lines[at].len() / 2];
        let cut = [&lines[..at], &[half]].concat();
        for bad in [joined(&without), joined(&twice), joined(&cut)] {
            let error = expect_refusal(&*store, &bad).await;
            assert!((1..=8).contains(&error.line), "{error:?}");
        }
        if changed != lines[at] {
            expect_refusal(&*store, &joined(&other)).await;
        }
        // Cut after a whole line.
        let error = expect_refusal(&*store, &joined(&lines[..at])).await;
        assert_eq!(error.line, at as u64 + 1);
    }
    import_text(&*store, "ada", &text).await.unwrap();
}

/// Returns the first line of an export of an empty conversation.
const HEAD: &str = r#"{"conversation":{"format":1,"owner":"ada","id":"chat","active":"main","created_ms":1,"updated_ms":2}}"#;
const END: &str = r#"{"end":{"lines":0,"branches":0,"checkpoints":0,"blobs":0,"nodes":0,"entries":0,"blake3":""}}"#;

/// Returns the line of a node, with the further fields `more`.
fn node_line(word: &str, parent: Option<&str>, more: &str) -> String {
    let parent = parent.map_or(String::new(), |parent| {
        format!(r#""parent":"{}","#, node(parent))
    });
    format!(
        r#"{{"node":{{"id":"{}",{parent}"kind":"user","item":{{}},"origin":"user","audience":"all","created_ms":1{more}}}}}"#,
        node(word)
    )
}

/// Returns a field that names a node.
fn node_field(field: &str, word: &str) -> String {
    format!(r#","{field}":"{}""#, node(word))
}

/// Lines of nodes that cannot follow those of `a` and `b`, and words of the reason.
fn wrong_node_lines(item_bytes: usize) -> Vec<(String, &'static str)> {
    let line = node_line;
    let a = line("a", None, "");
    let long = format!("\"{}\"", "x".repeat(item_bytes + 1));
    let state = r#","state":[{"key":"k","value":{"text":""}}]"#;
    vec![
        (line("c", Some("never"), ""), "not found"),
        // A cycle: a parent that comes later, or the node itself.
        (line("c", Some("c"), ""), "not found"),
        (a.clone(), "given before"),
        (line("a", Some("b"), ""), "given before"),
        (
            line("a", Some("b"), "").replace("{}", "{ }"),
            "already stored",
        ),
        (
            line("c", Some("b"), &node_field("copied_from", "never")),
            "not found",
        ),
        (
            line("c", Some("b"), &node_field("answers", "c")),
            "not found",
        ),
        (line("c", Some("b"), r#","depth":7"#), "depth"),
        (line("c", Some("b"), state), "version"),
        (line("c", Some("b"), "").replace("{}", &long), "item_bytes"),
        (a.replace("user", "robot"), "robot"),
        (a.replace(&node("a").to_string(), "a"), "32 hexadecimal"),
    ]
}

/// Lines that are no nodes and cannot follow nodes, and words of the reason.
fn wrong_other_lines() -> Vec<(String, &'static str)> {
    let lines = [
        (HEAD, "twice"),
        (
            r#"{"branch":{"name":"x","created_ms":1}}"#,
            "before the nodes",
        ),
        (
            r#"{"blob":{"id":"00000000000000000000000000000000","bytes":{"text":"x"}}}"#,
            "other bytes",
        ),
        (
            r#"{"blob":{"id":"00","bytes":{"base64":"*"}}}"#,
            "32 hexadecimal",
        ),
        (r#"{"message":{}}"#, "message"),
        ("", "no line"),
        (END, "checksum"),
    ];
    let mut lines: Vec<_> = lines.map(|(line, why)| (line.to_owned(), why)).into();
    lines.push(("[".repeat(100_000), "no line"));
    lines
}

pub(super) async fn a_wrong_line_is_named(store: Tested) {
    let (a, b) = (node_line("a", None, ""), node_line("b", Some("a"), ""));
    let mut wrong = wrong_node_lines(store.limits().item_bytes);
    wrong.extend(wrong_other_lines());
    for (third, why) in wrong {
        let error = expect_refusal(&*store, &[HEAD, &a, &b, &third, END].join("\n")).await;
        let source = error.source.to_string();
        assert_eq!(error.line, 4, "{source}");
        assert!(source.contains(why), "{why}: {source}");
    }
    for (first, why) in [
        (a.as_str(), "first"),
        (&HEAD.replace("\"format\":1", "\"format\":2"), "format 2"),
        (END, "alone"),
        ("{}", "no line"),
    ] {
        let error = expect_refusal(&*store, first).await;
        assert_eq!(error.line, 1);
        assert!(error.source.to_string().contains(why), "{}", error.source);
    }
    // Ids of blobs depend on their owner.
    let chat = rich_chat(Arc::new(MemoryStore::default())).await;
    let text = export_text(&chat).await;
    let error = import_text(&*store, "bob", &text).await.unwrap_err();
    assert!(
        error.source.to_string().contains("import it as ada"),
        "{error:?}"
    );
}

pub(super) async fn what_is_there_stays_and_what_is_half_is_begun_anew(store: Tested) {
    let chat = rich_chat(Arc::new(MemoryStore::default())).await;
    let text = export_text(&chat).await;
    let owner = chat.owner.clone();
    {
        let mut half = Import::new(&*store, &owner);
        for line in text.lines().take(250) {
            half.import_line(line).await.unwrap();
        }
        // Dropped, as by a crash.
    }
    assert!(store.load_conversation(&owner, &chat.id).await.is_ok());
    import_text(&*store, "ada", &text).await.unwrap();
    let there = Chat {
        store: Arc::clone(&store),
        ..chat.clone()
    };
    assert!(export_text(&there).await == text);
    let error = import_text(&*store, "ada", &text).await.unwrap_err();
    assert_eq!(error.line, 1);
    assert!(matches!(error.source, Error::AlreadyExists { .. }));
    assert!(export_text(&there).await == text);
    let empty = NewConversation::new("empty".parse().unwrap(), NOW);
    store.create_conversation(&owner, empty).await.unwrap();
    let there = Chat {
        id: "empty".parse().unwrap(),
        ..there
    };
    assert_eq!(there.path_nodes(branch_end("main")).await.len(), 0);
    let text = export_text(&there).await;
    store.delete_conversation(&owner, &there.id).await.unwrap();
    import_text(&*store, "ada", &text).await.unwrap();
    assert_eq!(export_text(&there).await, text);
}
