//! What of a payload a cache object holds: its hash, the body that makes one, and the payload that
//! names it.

use std::sync::Arc;

use contexture_ir::{ContentHash, Fields, quote_json};
use contexture_prompt_cache::{CachedContent, ContentIgnored, SegmentList, setting_value};
use contexture_wire::Format;

use crate::blocks::Rope;
use crate::contributions::{EnvelopeFields, push_member};
use crate::payload::body::Payload;
use crate::payload::outline::system_names;

impl Payload {
    /// The body of the call that makes a cache object (`cachedContents.create`) of the first so many
    /// segments, to be kept for so many seconds, as
    /// [`CacheAdvice`](crate::CacheAdvice) says. Nothing for a payload of another format than Gemini's.
    #[must_use]
    pub fn cache_object(&self, segments: usize, ttl_seconds: u64) -> Option<String> {
        // A payload that names an object is made complete first: a new object holds all of the
        // beginning.
        let whole = self.full_payload();
        let spec = whole.head.format.spec();
        let rules = spec.cache_key().cached_content?;
        let history = spec.members()?.history;
        let mut edges = EnvelopeFields::parse_envelope(&whole.before, &whole.after)?;
        let messages = segments.checked_sub(whole.head_segment_count())?;
        let prefix = rules.model_prefix;
        let model = whole.head.model.trim_start_matches(prefix);
        let model = quote_json(&format!("{prefix}{model}"));
        let mut body = format!("{{\"model\":{model},\"ttl\":\"{ttl_seconds}s\"");
        for member in edges.remove_members(&cached_member_names(whole.head.format)) {
            body.push(',');
            push_member(&mut body, &member);
        }
        let contents = whole.elements.iter().take(messages);
        let contents: Vec<&str> = contents.map(|one| &*one.json).collect();
        if !contents.is_empty() {
            body.push_str(&format!(",\"{history}\":["));
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
        let whole = self.full_payload();
        whole.cached_prefix_hash(&whole.outline(), segments)
    }

    /// The hash over the first so many segments and the settings of tools.
    pub(crate) fn cached_prefix_hash(
        &self,
        outline: &impl SegmentList,
        segments: usize,
    ) -> ContentHash {
        let around = format!("{}{}", self.before, self.after);
        let fields = Fields::parse(&around).unwrap_or_default();
        // The object holds the settings of tools as well, and a request beside it may not repeat them:
        // another setting needs another object.
        let config: String = tool_settings(self.head.format)
            .iter()
            .map(|name| setting_value(&fields, &[name]))
            .collect();
        let prefix = segments
            .checked_sub(1)
            .and_then(|last| outline.prefix_hashes(&[last]).pop());
        let mut bytes = prefix.map_or_else(Vec::new, |prefix| prefix.as_bytes().to_vec());
        bytes.extend_from_slice(config.as_bytes());
        ContentHash::of(&bytes)
    }

    /// The payload that names a cache object and leaves out what it holds.
    ///
    /// Together they are the whole payload, which was verified and stays known to [`Payload::outline`].
    pub(crate) fn name_cached_content(
        &self,
        content: &CachedContent,
        outline: &impl SegmentList,
    ) -> Result<Self, ContentIgnored> {
        let edges = EnvelopeFields::parse_envelope(&self.before, &self.after);
        let mut edges = edges.ok_or(ContentIgnored::Unsupported)?;
        let rules = self.head.format.spec().cache_key().cached_content;
        let names = rules.ok_or(ContentIgnored::Unsupported)?.members;
        // A parameter of the caller names an object of its own; two cannot be named.
        if !edges.remove_members(&names).is_empty() {
            return Err(ContentIgnored::Named);
        }
        let same = content.segments <= outline.segment_count()
            && self.cached_prefix_hash(outline, content.segments) == content.prefix;
        if !same {
            return Err(ContentIgnored::PrefixChanged);
        }
        // Tools and system prompt are refused beside an object, so it must hold all of them or is of
        // no use.
        let messages = content.segments.checked_sub(self.head_segment_count());
        let messages = messages.ok_or(ContentIgnored::HeadOutside)?;
        let elements = self.elements.skip_first(messages);
        // Gemini refuses a request without contents.
        if !elements.iter().any(|one| one.messages > 0) {
            return Err(ContentIgnored::NothingLeft);
        }
        edges.remove_members(&cached_member_names(self.head.format));
        let [member, _] = names;
        let name = (member.to_owned(), quote_json(&content.name));
        edges.back.push(name);
        Ok(self.shortened(&edges, elements))
    }

    /// The payload with other edges and fewer elements, which remembers the full one.
    fn shortened(&self, edges: &EnvelopeFields, elements: Rope) -> Self {
        let totals = elements.walk_totals();
        let around = (edges.opening_text().into(), edges.closing_text().into());
        let mut payload = Self::new(Arc::clone(&self.head), around, (elements, totals));
        payload.full = Some(Arc::new(self.clone()));
        payload
    }

    /// How many segments stand before the messages.
    fn head_segment_count(&self) -> usize {
        let around = format!("{}{}", self.before, self.after);
        let fields = Fields::parse(&around).unwrap_or_default();
        self.segment_layout(&fields).head_count()
    }
}

/// The settings of tools, which an object holds too; nothing where there are no objects.
fn tool_settings(format: Format) -> &'static [&'static str] {
    let spec = format.spec();
    let members = spec
        .members()
        .filter(|_| spec.cache_key().cached_content.is_some());
    members.map_or(&[], |members| members.tool_choice)
}

/// The members that an object holds.
fn cached_member_names(format: Format) -> Vec<&'static str> {
    let system = system_names(format).iter().copied();
    let tools = format.spec().tool_paths().iter();
    system
        .chain(tools.filter_map(|path| path.first().copied()))
        .chain(tool_settings(format).iter().copied())
        .collect()
}
