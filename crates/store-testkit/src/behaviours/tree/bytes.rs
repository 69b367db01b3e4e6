//! Bytes are returned exactly as they were stored.

use std::sync::Arc;

use contexture_ir::CheckpointName;
use contexture_store::{AppendRequest, PathEnd, RefChange, StateKey, StatePatch, Store};

use crate::chat::{Chat, NOW, branch_end, item, node, raw_item};

type Tested = Arc<dyn Store>;

pub(in crate::behaviours) async fn are_kept_as_they_are(store: Tested) {
    let chat = Chat::start(store).await;
    // A store keeps text and does not parse it, so even invalid JSON is returned, without
    // normalisation.
    let texts = [
        "",
        " ",
        "\0",
        "{ \"type\" : \"message\" ,\n\t\"role\":\"user\", \"content\": [] }\r\n",
        r#"{"type":"a:b","n":12345678901234567890123,"f":1e400,"z":-0.0,"d":1,"d":2}"#,
        r#"{"type":"a:b","lone":"\ud800","nul":"\u0000","lc":1,"$blob":"x","__proto__":{}}"#,
        "\u{feff}{}",
        "\u{202e}\u{e0041}\u{200d}👩‍👩‍👧‍👦 é e\u{301} \u{ffff} \u{10ffff}",
        "not JSON at all: '\"; DROP TABLE nodes; --",
    ];
    for (n, text) in texts.iter().enumerate() {
        chat.append_to_tip("main", vec![raw_item(&n.to_string(), text)])
            .await
            .unwrap();
    }
    let path = chat.path_nodes(branch_end("main")).await;
    let got: Vec<&str> = path.iter().map(|node| &*node.json).collect();
    assert_eq!(got, texts);
}

pub(in crate::behaviours) async fn hostile_text_changes_nothing(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    for text in [
        "'; DELETE FROM nodes; --",
        "%",
        "_",
        "\"",
        "\\",
        "x\u{202e}y",
        "ключ",
        "$.a[*]",
    ] {
        let name = CheckpointName::new(text).unwrap();
        let change = RefChange::SetCheckpoint {
            name: name.clone(),
            node: node("a"),
        };
        chat.change_ref(change).await.unwrap();
        assert_eq!(chat.path_nodes(PathEnd::Checkpoint(name)).await.len(), 1);
        let key = StateKey::new(text).unwrap();
        let patch = StatePatch::put_entry(key, 1, text.as_bytes());
        let items = vec![item(&format!("for {text}"))];
        let request = AppendRequest {
            patch,
            ..AppendRequest::new(Chat::at_tip("main"), items, NOW)
        };
        chat.append_request(request).await.unwrap();
        let state = chat.state_values(branch_end("main")).await;
        assert!(state.contains(&(text.to_owned(), 1, text.to_owned())));
    }
}

/// Text that does not compress into anything: a different line for each number.
fn incompressible_text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 32);
    for n in 0_u64.. {
        if text.len() >= bytes {
            break;
        }
        // The multiplication scatters the bits, so neighbouring numbers look unrelated.
        text.push_str(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string());
        // Two bytes in UTF-8, so that a cut at a byte limit would show as broken text.
        text.push('ü');
    }
    text
}

pub(in crate::behaviours) async fn large_items(store: Tested) {
    let chat = Chat::start(store).await;
    // Around common page sizes, beyond what fits into 16 bits, and beyond one mebibyte.
    let texts: Vec<String> = [4_000, 8_100, 8_200, 70_000, 1 << 20, 3 << 20]
        .map(incompressible_text)
        .into();
    let items = texts.iter().enumerate();
    let items = items
        .map(|(n, text)| raw_item(&n.to_string(), text))
        .collect();
    chat.append_to_tip("main", items).await.unwrap();
    let path = chat.path_nodes(branch_end("main")).await;
    for (node, text) in path.iter().zip(&texts) {
        assert!(*node.json == **text, "{} bytes differ", text.len());
    }
}

pub(in crate::behaviours) async fn large_blobs_and_values(store: Tested) {
    let chat = Chat::start(store).await;
    // Nothing at all, both sides of a common page size, and the limit of one value.
    for bytes in [0, 1, 4_096, 4_097, 100_000, 1 << 20] {
        let value: Vec<u8> = incompressible_text(bytes)
            .into_bytes()
            .into_iter()
            .take(bytes)
            .collect();
        let blob = Arc::<[u8]>::from(value.clone());
        let id = chat
            .store
            .put_blob(&chat.owner, &chat.id, blob)
            .await
            .unwrap();
        let read = chat
            .store
            .read_blob(&chat.owner, &chat.id, id)
            .await
            .unwrap();
        assert!(*read == *value, "{bytes} bytes differ");
        let key = StateKey::new("large").unwrap();
        let request = AppendRequest {
            patch: StatePatch::put_entry(key.clone(), 1, value.clone()),
            ..AppendRequest::new(Chat::at_tip("main"), vec![item(&bytes.to_string())], NOW)
        };
        chat.append_request(request).await.unwrap();
        let request = contexture_store::StateRequest::all_entries(branch_end("main"));
        let state = chat
            .store
            .read_state(&chat.owner, &chat.id, request)
            .await
            .unwrap();
        assert!(
            **state.loaded_value(&key).unwrap() == *value,
            "{bytes} bytes differ"
        );
    }
}
