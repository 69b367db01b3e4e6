//! No key reaches an error, a log line or a debug print.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use contexture_models::Model;
use contexture_models_http::{ApiKey, HttpModel, Provider};
use contexture_wire::Format;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::server::{Server, answer, json};
use crate::{chat, options};

/// Writes down everything anybody logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'l>(&'l mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn no_key_is_shown() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let echo = r#"{"error":{"message":"bad key sk-secret, header hdr-secret"}}"#;
    let html = "content-type: text/sk-secret\r\n";
    let server = Server::new(vec![
        vec![json("500 Internal Server Error", echo)],
        vec![json("401 Unauthorized", echo)],
        vec![answer("200 OK", html, "x")],
        vec![json("502 Bad Gateway", "plain sk-secret"); 1],
        vec![json("400 Bad Request", "plain sk-secret"); 1],
    ])
    .await;
    let key = Some(ApiKey::new(" sk-secret\n"));
    let provider = Provider::with_base_url(Format::OpenAiChat, &server.base, key).unwrap();
    let provider = provider.with_header("x-extra", "hdr-secret").unwrap();
    let mut shown = format!("{provider:?}");
    let model = HttpModel::with_options(provider, options()).unwrap();
    for _ in 0..3 {
        let error = model.answer(chat()).await.unwrap_err();
        write!(shown, "\n{error} {error:?} {model:?}").unwrap();
    }
    assert!(shown.contains("bad key [key], header [key]"), "{shown}");
    assert_eq!(server.requests().len(), 5);
    assert!(server.requests()[0].contains("x-extra: hdr-secret"));
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("model_unavailable"), "{logged}");
    for secret in ["sk-secret", "hdr-secret"] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(!logged.contains(secret), "{logged}");
    }
}
