//! `resolve` and `compile` gather the same: the system prompt of a payload from which nothing was cut, in one renderer.

use std::sync::Arc;

use contexture_compile::{Contribution, OmitReason, Placement, Target};
use contexture_engine::{Conversation, ImportOptions, MessageView};
use contexture_ir::{Fragment, Owner, Raw, UiMessage, fragment, hint, role, user};
use contexture_layers::Layers;
use contexture_layers::builtin::memory::Memory;
use contexture_layers::builtin::{Instructions, Skill, Skills};
use contexture_render::{JsonRenderer, MarkdownRenderer, RenderError, Renderer, XmlRenderer};
use contexture_sessions::{ReadOptions, detect_format, read_sessions};

use crate::support::{asks, engine};

/// A renderer of a program's own.
#[derive(Debug)]
struct Names;

impl Renderer for Names {
    fn name(&self) -> &str {
        "names"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let names: Vec<&str> = fragments.iter().map(|one| one.name.as_str()).collect();
        Ok(names.join(" + "))
    }
}

/// The text of the system prompt in a payload.
fn system_of(payload: &str) -> String {
    let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
    let block = |value: &serde_json::Value| match value {
        serde_json::Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
            texts.collect::<Vec<_>>().join("\n\n")
        }
        value => value.as_str().unwrap_or_default().to_owned(),
    };
    if let Some(system) = payload.get("system") {
        return block(system);
    }
    if let Some(system) = payload.pointer("/systemInstruction/parts") {
        return block(system);
    }
    let messages = payload["messages"].as_array().unwrap().iter();
    let leading = messages
        .take_while(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    let texts: Vec<String> = leading.map(|message| block(&message["content"])).collect();
    texts.join("\n\n")
}

async fn check_agreement(chat: &Conversation) -> String {
    let resolved = chat.resolve().await.unwrap().system_prompt;
    for target in [
        Target::openai_chat("gpt-4o"),
        Target::anthropic("claude-sonnet-4-5"),
        Target::gemini("gemini-2.5-pro"),
    ] {
        let call = chat.compile(&target).await.unwrap();
        let mut omitted = call.report.omitted.iter();
        assert!(omitted.all(|span| span.reason != OmitReason::Trimmed));
        assert_eq!(
            system_of(&call.payload.to_json()),
            resolved,
            "{}",
            target.name()
        );
    }
    resolved
}

fn layers() -> Layers {
    let skill = Skill::new("greet", "How to greet.", "Bow before you greet.").unwrap();
    let house = Instructions::new("Be polite.");
    Layers::new()
        .with_layer(house)
        .unwrap()
        .with_layer(Skills::new([skill]).unwrap())
        .unwrap()
        .with_layer(Memory::new())
        .unwrap()
}

#[tokio::test]
async fn resolve_is_the_system_band_of_compile() {
    let engine = engine().with_layers(layers());
    let log =
        r#"[{"role":"system","content":"You were imported."},{"role":"user","content":"hi"}]"#;
    let format = detect_format(log, "chat.json").unwrap().format;
    let session = read_sessions(format, log, &ReadOptions::default())
        .unwrap()
        .remove(0);
    let options = ImportOptions {
        owner: Owner::local(),
        conversation: Some("c".parse().unwrap()),
        ..ImportOptions::default()
    };
    engine.import(&session, &options).await.unwrap();
    let chat = engine.conversation("c").open().await.unwrap();
    chat.set([role("R"), fragment("rules", (hint("H <b>"), hint("I")))])
        .unwrap();
    let state = Contribution::state(&["ship it"], Placement::System).unwrap();
    chat.update_call_context(|context| {
        context.set_state(Some(state));
        context.set_context("file", "never in the system prompt");
    });
    let note = Raw::parse(r#"{"key":"tone","value":"dry"}"#).unwrap();
    chat.call_function("create_memory", &note).await.unwrap();
    let renderers: [Arc<dyn Renderer>; 4] = [
        Arc::new(XmlRenderer::default()),
        Arc::new(MarkdownRenderer::default()),
        Arc::new(JsonRenderer::default()),
        Arc::new(Names),
    ];
    for renderer in renderers {
        let name = renderer.name().to_owned();
        chat.set_renderer(renderer);
        let resolved = check_agreement(&chat).await;
        assert!(
            resolved.starts_with("You were imported."),
            "{name}: {resolved}"
        );
        assert!(!resolved.contains("never in the system prompt"));
        assert_eq!(
            resolved.contains("<role>R</role>"),
            name == "xml",
            "{resolved}"
        );
        assert_eq!(
            resolved.contains("role + rules"),
            name == "names",
            "{resolved}"
        );
        assert_eq!(
            resolved.contains("greet"),
            name != "names",
            "{name}: {resolved}"
        );
        // A draft shows what will be sent once it is stored.
        let mut draft = chat.draft();
        draft.push(asks(&format!("after-{name}"), "And now?"));
        let shown = draft.resolve().await.unwrap();
        draft.commit().await.unwrap();
        assert_eq!(shown, chat.resolve().await.unwrap());
        // The handle of another branch writes alike.
        assert_eq!(chat.renderer().name(), name);
    }
}

#[tokio::test]
async fn people_are_shown_no_reminders_and_models_are() {
    let chat = crate::support::chat().await;
    let message = |metadata: &str, text: &str| {
        let json = format!(
            r#"{{"id":"","role":"user","metadata":{metadata},"parts":[{{"type":"text","text":{}}}]}}"#,
            contexture_ir::quote_json(text)
        );
        user(UiMessage::parse(&json).unwrap())
    };
    // Offsets are UTF-16 units: the face takes two.
    let one = r#"{"reminders":[{"id":"r","partIndex":0,"start":6,"end":22}],"mine":1}"#;
    let whole = r#"{"synthetic":{"source":"reminder"}}"#;
    chat.save([
        message(one, "Fine😀<reminder>Now!"),
        message(whole, "<reminder>Later"),
        message(r#"{"reminders":"mine"}"#, "<reminder>I wrote this"),
    ])
    .await
    .unwrap();
    let texts = async |view| {
        let messages = chat.messages(view).await.unwrap();
        messages
            .iter()
            .map(UiMessage::joined_text)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(MessageView::User).await,
        ["Fine😀", "<reminder>I wrote this"]
    );
    assert_eq!(
        texts(MessageView::Model).await,
        [
            "Fine😀<reminder>Now!",
            "<reminder>Later",
            "<reminder>I wrote this"
        ]
    );
    let shown = chat.messages(MessageView::User).await.unwrap().remove(0);
    assert_eq!(shown.metadata.unwrap().get(), r#"{"mine":1}"#);
    // A front end sends back all that it was shown, with what is new.
    let mut again: Vec<_> = chat.messages(MessageView::User).await.unwrap();
    again.push(UiMessage::text(contexture_ir::UiRole::User, "Next"));
    chat.save(again.into_iter().map(user)).await.unwrap();
    assert_eq!(chat.branch().as_str(), "main");
    assert_eq!(
        texts(MessageView::Model).await,
        [
            "Fine😀<reminder>Now!",
            "<reminder>Later",
            "<reminder>I wrote this",
            "Next"
        ]
    );
}

/// An agent with layers of its own and a caller that gives it a renderer: neither takes the other's away.
#[tokio::test]
async fn own_settings_keep_what_is_not_given_again() {
    let chat = engine().conversation("c").open().await.unwrap();
    let layers = Layers::new().with_layer(Memory::new()).unwrap();
    let own = chat.with_own_settings(Some(layers), None);
    let both = own.with_own_settings(None, Some(Arc::new(Names)));
    assert!(!both.layers().is_empty());
    assert_eq!(both.renderer().name(), "names");
    let other = both.with_own_settings(Some(Layers::new()), None);
    assert!(other.layers().is_empty());
    assert_eq!(other.renderer().name(), "names");
    // Nothing of it is the conversation's.
    assert!(chat.layers().is_empty());
    assert_ne!(chat.renderer().name(), "names");
}
