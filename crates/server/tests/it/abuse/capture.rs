//! Everything that is logged, down to the last trace of libraries.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// What was logged in this process since it was first asked for.
#[derive(Clone, Default)]
pub(super) struct Capture(Arc<Mutex<String>>);

impl Capture {
    /// From now on all is kept.
    pub(super) fn begin() -> Self {
        static CAPTURE: OnceLock<Capture> = OnceLock::new();
        let begin = || {
            let capture = Self::default();
            tracing_subscriber::registry().with(capture.clone()).init();
            capture
        };
        CAPTURE.get_or_init(begin).clone()
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// The lines of a target.
    pub(super) fn of(&self, target: &str) -> Vec<String> {
        let start = format!("{target}:");
        let text = self.text();
        let lines = text.lines().filter(|line| line.starts_with(&start));
        lines.map(str::to_owned).collect()
    }

    fn line(&self, target: &str, fields: impl FnOnce(&mut Line)) {
        let mut line = Line(format!("{target}:"));
        fields(&mut line);
        let mut text = self.0.lock().unwrap();
        text.push_str(&line.0);
        text.push('\n');
    }
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let metadata = span.metadata();
        self.line(metadata.target(), |line| {
            line.0.push_str(metadata.name());
            span.record(line);
        });
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.line("", |line| values.record(line));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.line(event.metadata().target(), |line| event.record(line));
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
