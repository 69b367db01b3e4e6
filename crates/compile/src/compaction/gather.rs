//! Items read into a manifest.
//!
//! Everything is read once, in order: what the person and the model say, what calls do and what their
//! outputs tell. Reasoning is not: it is the model's own, and what it decides is said again or done.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Part};
use indexmap::{IndexMap, IndexSet};

use super::deeds::Deeds;
use super::errors;
use super::facts::{self, Facts};
use super::manifest::{
    CommandEntry, Covered, Decision, Entry, FileEntry, LinkEntry, Manifest, NamedValues, Speaker,
};
use super::sentence::{decisions, one_line, shorten};
use super::shell::Touch;
use super::words::{Kind, essence, words};
use crate::preview::Link;

/// How long a person's message stays, in bytes.
const ASKED: usize = 280;
/// How long a command stays.
const COMMAND: usize = 200;
/// How long an error line stays.
const ERROR: usize = 240;
/// From which length on an output is linked to.
const LINKED: usize = 2_000;

impl Manifest {
    /// The manifest of a span, in the order of its items. Give it what models may read.
    ///
    /// Compactions among the items are not read: what they stand for is in the span itself.
    #[must_use]
    pub fn of(items: &[Covered<'_>]) -> Self {
        let mut gathered = Gathered::default();
        for covered in items {
            let index = covered.index;
            match covered.item {
                Item::Message(message) => gathered.message(index, message),
                Item::FunctionCall(call) => gathered.call(index, call),
                Item::FunctionCallOutput(output) => gathered.output(covered, output),
                Item::Reasoning(_) | Item::Compaction(_) | Item::Extension(_) => {}
            }
        }
        gathered.finish(items.len())
    }

    /// The same without the identifiers, numbers, paths, URLs and values that these items say: those that
    /// stay in view beside it.
    #[must_use]
    pub fn beside(mut self, in_view: &[Covered<'_>]) -> Self {
        let view = Self::of(in_view);
        let lists = [&view.identifiers, &view.numbers, &view.urls, &view.paths];
        let named = view.named.iter().flat_map(|named| &named.values);
        let said = lists.into_iter().flatten().chain(named);
        let said: BTreeSet<&str> = said.map(|word| essence(word)).collect();
        let lists = [
            &mut self.identifiers,
            &mut self.numbers,
            &mut self.urls,
            &mut self.paths,
        ];
        for list in lists {
            list.retain(|word| !said.contains(essence(word)));
        }
        for named in &mut self.named {
            named.values.retain(|value| !said.contains(essence(value)));
        }
        self.named.retain(|named| !named.values.is_empty());
        self
    }
}

/// Texts once each, with where they were first.
type Seen = IndexMap<String, (usize, usize)>;

#[derive(Default)]
struct Gathered {
    asked: Seen,
    files: IndexMap<String, FileEntry>,
    commands: IndexMap<String, CommandEntry>,
    errors: Seen,
    tasks: Vec<Entry>,
    decisions: IndexMap<(Speaker, String), (usize, usize)>,
    named: Facts,
    identifiers: IndexSet<String>,
    numbers: IndexSet<String>,
    urls: IndexSet<String>,
    paths: IndexSet<String>,
    links: Vec<LinkEntry>,
    /// Calls without an output so far, by their ids, newest last.
    waiting: BTreeMap<String, Vec<Waiting>>,
    open_file: Option<String>,
}

struct Waiting {
    index: usize,
    tool: String,
    command: Option<String>,
}

impl Gathered {
    fn message(&mut self, index: usize, message: &Message) {
        let Some(by) = Speaker::of(message.role) else {
            return;
        };
        let texts = message.content.iter().filter_map(Part::as_text);
        let text = texts.collect::<Vec<_>>().join("\n");
        self.text(&text);
        if by == Speaker::User {
            count(&mut self.asked, index, shorten(&text, ASKED));
            if text.len() <= ASKED {
                return; // Kept whole, its decisions with it.
            }
            // Somebody may have pasted a log.
            for line in errors::lines(&text) {
                count(&mut self.errors, index, shorten(line, ERROR));
            }
        }
        for sentence in decisions(message.role, &text) {
            let key = (by, one_line(sentence));
            self.decisions.entry(key).or_insert((index, 0)).1 += 1;
        }
    }

    fn call(&mut self, index: usize, call: &FunctionCall) {
        let deeds = Deeds::of(call);
        for (touch, path) in &deeds.files {
            self.touch(*touch, path);
        }
        let command = deeds
            .command
            .as_deref()
            .map(|command| shorten(command, COMMAND));
        if let Some(command) = &command {
            let entry = CommandEntry {
                index,
                command: command.clone(),
                exit: None,
                failed: false,
                times: 0,
            };
            let entry = self.commands.entry(command.clone()).or_insert(entry);
            entry.index = index;
            entry.times += 1;
        }
        if let Some(tasks) = deeds.tasks {
            let open = tasks.into_iter().filter(|(_, done)| !done);
            let entry = |(text, _): (String, bool)| Entry {
                index,
                text: shorten(&text, ERROR),
                times: 1,
            };
            self.tasks = open.map(entry).collect();
        } else {
            self.structured(&call.arguments);
        }
        if deeds.opens
            && let Some((_, path)) = deeds.files.first()
        {
            self.open_file = Some(path.clone());
        } else if deeds.edits_open_file
            && let Some(path) = self.open_file.clone()
        {
            self.touch(Touch::Writes, &path);
        }
        let waiting = Waiting {
            index,
            tool: call.name.clone(),
            command,
        };
        self.waiting
            .entry(call.call_id.clone())
            .or_default()
            .push(waiting);
    }

    fn output(&mut self, covered: &Covered<'_>, output: &FunctionCallOutput) {
        let index = covered.index;
        let text = covered.item.text();
        let call = self.waiting.get_mut(&output.call_id).and_then(Vec::pop);
        let failed = output.is_error == Some(true);
        if let Some(entry) = call
            .as_ref()
            .and_then(|call| call.command.as_ref())
            .and_then(|command| self.commands.get_mut(command))
        {
            entry.exit = errors::exit_code(&text);
            entry.failed = failed;
        }
        let mut any = false;
        for line in errors::lines(&text) {
            count(&mut self.errors, index, shorten(line, ERROR));
            any = true;
        }
        if failed && !any {
            count(&mut self.errors, index, shorten(&text, ERROR));
        }
        if text.len() >= LINKED
            && let Some(hash) = covered.hash
        {
            self.links.push(LinkEntry {
                index,
                link: Link::new(hash).to_string(),
                tool: call.map(|call| call.tool).unwrap_or_default(),
                bytes: text.len(),
            });
        }
        self.structured(&text);
    }

    fn touch(&mut self, touch: Touch, path: &str) {
        let path = one_line(path);
        let entry = self.files.entry(path.clone()).or_insert_with(|| FileEntry {
            path,
            ..FileEntry::default()
        });
        match touch {
            Touch::Reads => entry.read += 1,
            Touch::Writes => entry.written += 1,
            Touch::Removes => entry.removed += 1,
        }
    }

    /// JSON by its names, anything else by its words.
    fn structured(&mut self, text: &str) {
        let mut named = std::mem::take(&mut self.named);
        let read = facts::read(text, &mut named, &mut |text| self.text(text));
        self.named = named;
        if read.is_none() {
            self.text(text);
        }
    }

    fn text(&mut self, text: &str) {
        for line in text.lines() {
            for (kind, word) in words(unnumbered(line)) {
                let values = match kind {
                    Kind::Url => &mut self.urls,
                    Kind::Path => &mut self.paths,
                    Kind::Identifier => &mut self.identifiers,
                    Kind::Number => &mut self.numbers,
                };
                if !values.contains(word) {
                    values.insert(word.to_owned());
                }
            }
        }
    }

    fn finish(self, items: usize) -> Manifest {
        // What has a place of its own needs no second mention.
        let (files, commands) = (self.files, self.commands);
        let mut named: Vec<NamedValues> = self
            .named
            .into_iter()
            .map(|(name, values)| NamedValues {
                name: one_line(&name),
                values: values.iter().map(|value| one_line(value)).collect(),
            })
            .collect();
        for one in &mut named {
            let placed = |value: &String| files.contains_key(value) || commands.contains_key(value);
            one.values.retain(|value| !placed(value));
        }
        named.retain(|one| !one.values.is_empty());
        let known: BTreeSet<&str> = named
            .iter()
            .flat_map(|named| named.values.iter().map(|value| essence(value)))
            .collect();
        let unnamed = |values: IndexSet<String>| -> Vec<String> {
            values
                .into_iter()
                .filter(|value| !known.contains(essence(value)))
                .collect()
        };
        let mut waiting: Vec<Waiting> = self.waiting.into_values().flatten().collect();
        waiting.sort_by_key(|call| call.index);
        let waiting = waiting.into_iter().map(|call| Entry {
            index: call.index,
            text: shorten(&format!("no output of {}", call.tool), ERROR),
            times: 1,
        });
        let identifiers = unnamed(self.identifiers);
        let (numbers, urls) = (unnamed(self.numbers), unnamed(self.urls));
        let mut paths = unnamed(self.paths);
        paths.retain(|path| !files.contains_key(path));
        let decisions = self
            .decisions
            .into_iter()
            .map(|((by, text), (index, times))| Decision {
                by,
                said: Entry { index, text, times },
            });
        Manifest {
            items,
            asked: entries(self.asked),
            files: files.into_values().collect(),
            commands: commands.into_values().collect(),
            errors: entries(self.errors),
            open: self.tasks.into_iter().chain(waiting).collect(),
            decisions: decisions.collect(),
            identifiers,
            numbers,
            urls,
            paths,
            links: self.links,
            named,
        }
    }
}

fn count(seen: &mut Seen, index: usize, text: String) {
    if !text.is_empty() {
        seen.entry(text).or_insert((index, 0)).1 += 1;
    }
}

fn entries(seen: Seen) -> Vec<Entry> {
    seen.into_iter()
        .map(|(text, (index, times))| Entry { index, text, times })
        .collect()
}

/// A line without the number that a file viewer wrote before it.
fn unnumbered(line: &str) -> &str {
    let text = line.trim_start();
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match behind.strip_prefix([':', '\t', '→', '|']) {
        // 10:30 is a time.
        Some(rest)
            if behind.len() < text.len() && !rest.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            rest
        }
        _ => line,
    }
}
