//! What of a payload a cache object holds: its hash, the body that makes one, and the payload that
//! names it.

use std::sync::Arc;

use contexture_ir::{ContentHash, Fields, quote};
use contexture_wire::Format;

use super::{Payload, Place, system_names};
use crate::cache::content::{CachedContent, ContentIgnored};
use crate::cache::outline::Outline;
use crate::cache::settings::value;
use crate::edges::{Edges, push};

/// The settings of tools, which an object holds too.
const TOOL_CONFIG: [&str; 2] = ["toolConfig", "tool_config"];
const TOOLS: &str = "tools";
const NAMED: [&str; 2] = ["cachedContent", "cached_content"];

impl Payload {
    /// The body of the call that makes a cache object (`cachedContents.create`) of the first so many
    /// segments, to be kept for so many seconds, as
    /// [`CacheAdvice`](crate::CacheAdvice) says. Nothing for a payload of another format than Gemini's.
    #[must_use]
    pub fn cache_object(&self, segments: usize, ttl_seconds: u64) -> Option<String> {
        let whole = self.whole();
        if whole.head.format != Format::Gemini {
            return None;
        }
        let mut edges = Edges::read(&whole.before, &whole.after)?;
        let messages = segments.checked_sub(whole.heads())?;
        let model = whole.head.model.trim_start_matches("models/");
        let model = quote(&format!("models/{model}"));
        let mut body = format!("{{\"model\":{model},\"ttl\":\"{ttl_seconds}s\"");
        for member in edges.take(&held_names()) {
            body.push(',');
            push(&mut body, &member);
        }
        let contents = whole.elements.iter().take(messages);
        let contents: Vec<&str> = contents.map(|one| &*one.json).collect();
        if !contents.is_empty() {
            body.push_str(",\"contents\":[");
            body.push_str(&contents.join(","));
            body.push(']');
        }
        body.push('}');
        Some(body)
    }

    /// The hash by which a cache object of the first so many segments of the outline is known:
    /// [`CachedContent::prefix`].
    #[must_use]
    pub fn cache_prefix(&self, segments: usize) -> ContentHash {
        let whole = self.whole();
        whole.held(&whole.outline(), segments)
    }

    /// The hash over the first so many segments and the settings of tools.
    pub(crate) fn held(&self, outline: &Outline, segments: usize) -> ContentHash {
        let around = format!("{}{}", self.before, self.after);
        let fields = Fields::parse(&around).unwrap_or_default();
        let config = TOOL_CONFIG.map(|name| value(&fields, &[name])).concat();
        let prefix = segments.checked_sub(1).map(|last| outline.prefix(last));
        let mut bytes = prefix.map_or_else(Vec::new, |prefix| prefix.as_bytes().to_vec());
        bytes.extend_from_slice(config.as_bytes());
        ContentHash::of(&bytes)
    }

    /// The payload that names a cache object and leaves out what it holds.
    ///
    /// Together they are the whole payload, which was verified and stays known to [`Payload::outline`].
    pub(crate) fn naming(
        &self,
        content: &CachedContent,
        outline: &Outline,
    ) -> Result<Self, ContentIgnored> {
        let edges = Edges::read(&self.before, &self.after);
        let mut edges = edges.ok_or(ContentIgnored::Unsupported)?;
        if !edges.take(&NAMED).is_empty() {
            return Err(ContentIgnored::Named);
        }
        let same = content.segments <= outline.segments.len()
            && self.held(outline, content.segments) == content.prefix;
        if !same {
            return Err(ContentIgnored::PrefixChanged);
        }
        let messages = content.segments.checked_sub(self.heads());
        let messages = messages.ok_or(ContentIgnored::HeadOutside)?;
        let elements = self.elements.behind(messages);
        if !elements.iter().any(|one| one.messages > 0) {
            return Err(ContentIgnored::NothingLeft);
        }
        edges.take(&held_names());
        let name = (NAMED[0].to_owned(), quote(&content.name));
        edges.back.push(name);
        let mut payload = Self {
            head: Arc::clone(&self.head),
            before: edges.before().into(),
            elements,
            after: edges.after().into(),
            len: 0,
            whole: Some(Arc::new(self.clone())),
        };
        payload.measure();
        Ok(payload)
    }

    /// How many segments stand before the messages.
    fn heads(&self) -> usize {
        let around = format!("{}{}", self.before, self.after);
        let places = self.places(&Fields::parse(&around).unwrap_or_default());
        let head = |place: &&Place| !matches!(place, Place::Element(_));
        places.iter().filter(head).count()
    }
}

/// The members that an object holds.
fn held_names() -> Vec<&'static str> {
    let system = system_names(Format::Gemini).iter().copied();
    system.chain([TOOLS]).chain(TOOL_CONFIG).collect()
}
