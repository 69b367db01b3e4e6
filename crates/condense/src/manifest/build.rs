//! Builds a manifest from items.
//!
//! The items are read once, in order: what the user and the model say, what calls do, and what their
//! outputs report. Reasoning is skipped: it is internal to the model, and its decisions show in messages and calls.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Part};
use contexture_wire::partner_indices;
use indexmap::{IndexMap, IndexSet};

use contexture_text::fact_words::{FactKind, extract_facts, normalize_value};
use contexture_text::{one_line, shorten_line};

use crate::extract::decisions::decision_sentences;
use crate::extract::errors;
use crate::extract::json_facts::{self, ValuesByName};
use crate::extract::shell::FileAccess;
use crate::extract::tool_effects::ToolEffects;
use crate::link::Link;
use crate::manifest::data::{
    CommandEntry, CoveredItem, Decision, FileEntry, LinkEntry, Manifest, ManifestEntry,
    NamedValues, Speaker,
};

/// Maximum length stored of a user's message, in bytes.
const MAX_USER_MESSAGE_BYTES: usize = 280;
/// Maximum length stored of a command, in bytes.
const COMMAND: usize = 200;
/// Maximum length stored of an error line or a task, in bytes.
const ERROR: usize = 240;
/// Minimum length of an output that gets a link, in bytes.
const MIN_LINKED_BYTES: usize = 2_000;

impl Manifest {
    /// Builds the manifest of a span, in the order of its items. Pass only items that models may read.
    ///
    /// Compactions among the items are not read: what they replace is in the span itself.
    #[must_use]
    pub fn from_items(items: &[CoveredItem<'_>]) -> Self {
        let mut gathered = ManifestBuilder::default();
        let partners = partner_indices(items.iter().map(|covered| covered.item));
        for (position, (covered, partner)) in items.iter().zip(partners).enumerate() {
            let index = covered.index;
            match covered.item {
                Item::Message(message) => gathered.add_message(index, message),
                Item::FunctionCall(call) => {
                    let open = gathered.add_call(index, call);
                    gathered.open_calls.insert(position, open);
                }
                Item::FunctionCallOutput(output) => {
                    let call = partner.and_then(|call| gathered.open_calls.remove(&call));
                    gathered.add_output(covered, output, call);
                }
                // A compaction repeats what the originals say, and reasoning is not a fact.
                Item::Reasoning(_) | Item::Compaction(_) | Item::Extension(_) => {}
            }
        }
        gathered.build_manifest(items.len())
    }

    /// Removes the identifiers, numbers, paths, URLs and named values that also occur in `in_view`, the items that stay
    /// visible beside the manifest.
    #[must_use]
    pub fn without_identifiers(mut self, in_view: &[CoveredItem<'_>]) -> Self {
        let view = Self::from_items(in_view);
        let lists = [&view.identifiers, &view.numbers, &view.urls, &view.paths];
        let named = view.named.iter().flat_map(|named| &named.values);
        let said = lists.into_iter().flatten().chain(named);
        let said: BTreeSet<&str> = said.map(|word| normalize_value(word)).collect();
        let lists = [
            &mut self.identifiers,
            &mut self.numbers,
            &mut self.urls,
            &mut self.paths,
        ];
        for list in lists {
            list.retain(|word| !said.contains(normalize_value(word)));
        }
        for named in &mut self.named {
            named
                .values
                .retain(|value| !said.contains(normalize_value(value)));
        }
        self.named.retain(|named| !named.values.is_empty());
        self
    }
}

/// Distinct texts, each with the index of the first item that contains it and the number of its occurrences.
type TextOccurrences = IndexMap<String, (usize, usize)>;

#[derive(Default)]
struct ManifestBuilder {
    asked: TextOccurrences,
    files: IndexMap<String, FileEntry>,
    commands: IndexMap<String, CommandEntry>,
    errors: TextOccurrences,
    tasks: Vec<ManifestEntry>,
    decisions: IndexMap<(Speaker, String), (usize, usize)>,
    named: ValuesByName,
    identifiers: IndexSet<String>,
    numbers: IndexSet<String>,
    urls: IndexSet<String>,
    paths: IndexSet<String>,
    links: Vec<LinkEntry>,
    /// Calls without an output so far, by their positions in the span.
    open_calls: BTreeMap<usize, OpenCall>,
    open_file: Option<String>,
}

struct OpenCall {
    index: usize,
    tool: String,
    command: Option<String>,
}

impl OpenCall {
    fn into_entry(self) -> ManifestEntry {
        ManifestEntry {
            index: self.index,
            text: shorten_line(&format!("no output of {}", self.tool), ERROR),
            times: 1,
        }
    }
}

impl ManifestBuilder {
    fn add_message(&mut self, index: usize, message: &Message) {
        let Some(by) = Speaker::from_role(message.role) else {
            return;
        };
        let texts = message.content.iter().filter_map(Part::as_text);
        let text = texts.collect::<Vec<_>>().join("\n");
        self.add_text(&text);
        if by == Speaker::User {
            count_text(
                &mut self.asked,
                index,
                shorten_line(&text, MAX_USER_MESSAGE_BYTES),
            );
            if text.len() <= MAX_USER_MESSAGE_BYTES {
                return; // Kept whole, including its decisions.
            }
            // A long message may be a pasted log.
            for line in errors::find_error_lines(&text) {
                count_text(&mut self.errors, index, shorten_line(line, ERROR));
            }
        }
        for sentence in decision_sentences(message.role, &text) {
            let key = (by, one_line(sentence));
            self.decisions.entry(key).or_insert((index, 0)).1 += 1;
        }
    }

    fn add_call(&mut self, index: usize, call: &FunctionCall) -> OpenCall {
        let effects = ToolEffects::of_call(call);
        for (access, path) in &effects.files {
            self.add_file_access(*access, path);
        }
        let command = effects
            .command
            .as_deref()
            .map(|command| shorten_line(command, COMMAND));
        if let Some(command) = &command {
            self.add_command(index, command);
        }
        if let Some(tasks) = effects.tasks {
            let open = tasks.into_iter().filter(|(_, done)| !done);
            let entry = |(text, _): (String, bool)| ManifestEntry {
                index,
                text: shorten_line(&text, ERROR),
                times: 1,
            };
            // A task list replaces the previous one.
            self.tasks = open.map(entry).collect();
        } else {
            self.add_structured_text(&call.arguments);
        }
        if effects.opens
            && let Some((_, path)) = effects.files.first()
        {
            self.open_file = Some(path.clone());
        } else if effects.edits_open_file
            && let Some(path) = self.open_file.clone()
        {
            self.add_file_access(FileAccess::Writes, &path);
        }
        OpenCall {
            index,
            tool: call.name.clone(),
            command,
        }
    }

    fn add_command(&mut self, index: usize, command: &str) {
        let entry = CommandEntry {
            index,
            command: command.to_owned(),
            exit: None,
            failed: false,
            times: 0,
        };
        let entry = self.commands.entry(command.to_owned()).or_insert(entry);
        // The index of the last run, whose result applies.
        entry.index = index;
        entry.times += 1;
    }

    fn add_output(
        &mut self,
        covered: &CoveredItem<'_>,
        output: &FunctionCallOutput,
        call: Option<OpenCall>,
    ) {
        let index = covered.index;
        let text = covered.item.text();
        // The output's own error flag, which is independent of its text.
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
        for line in errors::find_error_lines(&text) {
            count_text(&mut self.errors, index, shorten_line(line, ERROR));
            any = true;
        }
        // Otherwise a failure without a recognised error line would be lost.
        if failed && !any {
            count_text(&mut self.errors, index, shorten_line(&text, ERROR));
        }
        self.add_link(covered, &text, call.map(|call| call.tool));
        self.add_structured_text(&text);
    }

    fn add_link(&mut self, covered: &CoveredItem<'_>, text: &str, tool: Option<String>) {
        // Short outputs are not worth a link: their facts are in the lists.
        if text.len() >= MIN_LINKED_BYTES
            && let Some(hash) = covered.hash
        {
            self.links.push(LinkEntry {
                index: covered.index,
                link: Link::new(hash).to_string(),
                tool: tool.unwrap_or_default(),
                bytes: text.len(),
            });
        }
    }

    fn add_file_access(&mut self, touch: FileAccess, path: &str) {
        let path = one_line(path);
        let entry = self.files.entry(path.clone()).or_insert_with(|| FileEntry {
            path,
            ..FileEntry::default()
        });
        match touch {
            FileAccess::Reads => entry.read += 1,
            FileAccess::Writes => entry.written += 1,
            FileAccess::Removes => entry.removed += 1,
        }
    }

    /// Reads the facts of a text: of JSON by member names, of anything else by words.
    fn add_structured_text(&mut self, text: &str) {
        let mut named = std::mem::take(&mut self.named);
        let read =
            json_facts::collect_json_facts(text, &mut named, &mut |text| self.add_text(text));
        self.named = named;
        if read.is_none() {
            self.add_text(text);
        }
    }

    fn add_text(&mut self, text: &str) {
        for line in text.lines() {
            for (kind, word) in extract_facts(strip_line_number(line)) {
                let values = match kind {
                    FactKind::Url => &mut self.urls,
                    FactKind::Path => &mut self.paths,
                    FactKind::Identifier => &mut self.identifiers,
                    FactKind::Number => &mut self.numbers,
                };
                if !values.contains(word) {
                    values.insert(word.to_owned());
                }
            }
        }
    }

    fn build_manifest(self, items: usize) -> Manifest {
        // Files and commands have lists of their own.
        let (files, commands) = (self.files, self.commands);
        let is_listed = |value: &String| files.contains_key(value) || commands.contains_key(value);
        let named = unlisted_values(self.named, is_listed);
        // A value is more useful with its name than in a plain list.
        let known: BTreeSet<&str> = named
            .iter()
            .flat_map(|named| named.values.iter().map(|value| normalize_value(value)))
            .collect();
        let unnamed = |values: IndexSet<String>| -> Vec<String> {
            values
                .into_iter()
                .filter(|value| !known.contains(normalize_value(value)))
                .collect()
        };
        let open_calls = self.open_calls.into_values().map(OpenCall::into_entry);
        let identifiers = unnamed(self.identifiers);
        let (numbers, urls) = (unnamed(self.numbers), unnamed(self.urls));
        let mut paths = unnamed(self.paths);
        paths.retain(|path| !files.contains_key(path));
        let decision = |((by, text), (index, times))| Decision {
            by,
            statement: ManifestEntry { index, text, times },
        };
        Manifest {
            items,
            asked: into_entries(self.asked),
            files: files.into_values().collect(),
            commands: commands.into_values().collect(),
            errors: into_entries(self.errors),
            open: self.tasks.into_iter().chain(open_calls).collect(),
            decisions: self.decisions.into_iter().map(decision).collect(),
            identifiers,
            numbers,
            urls,
            paths,
            links: self.links,
            named,
        }
    }
}

/// Returns the named values that are not in another list, each on one line.
fn unlisted_values(named: ValuesByName, is_listed: impl Fn(&String) -> bool) -> Vec<NamedValues> {
    let mut named: Vec<NamedValues> = named
        .into_iter()
        .map(|(name, values)| NamedValues {
            name: one_line(&name),
            values: values.iter().map(|value| one_line(value)).collect(),
        })
        .collect();
    for one in &mut named {
        one.values.retain(|value| !is_listed(value));
    }
    named.retain(|one| !one.values.is_empty());
    named
}

fn count_text(seen: &mut TextOccurrences, index: usize, text: String) {
    if !text.is_empty() {
        seen.entry(text).or_insert((index, 0)).1 += 1;
    }
}

fn into_entries(seen: TextOccurrences) -> Vec<ManifestEntry> {
    seen.into_iter()
        .map(|(text, (index, times))| ManifestEntry { index, text, times })
        .collect()
}

/// Strips the line number that a file viewer put before a line.
fn strip_line_number(line: &str) -> &str {
    let text = line.trim_start();
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match behind.strip_prefix([':', '\t', '→', '|']) {
        // `10:30` is a time, not a line number.
        Some(rest)
            if behind.len() < text.len() && !rest.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            rest
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::Output;

    use super::*;

    fn run(command: &str) -> Item {
        let arguments = format!("{{\"command\":{command:?}}}");
        Item::FunctionCall(FunctionCall::new("call_1", "bash", arguments))
    }

    fn output(is_error: bool) -> Item {
        let mut output = FunctionCallOutput::new("call_1", Output::Text("done".to_owned()));
        output.is_error = Some(is_error);
        Item::FunctionCallOutput(output)
    }

    /// Checks the commands, whether the output of each is marked as an error, and the number of open
    /// entries.
    fn check(items: &[Item], commands: &[(&str, bool)], open: usize) {
        let covered = |(index, item)| CoveredItem {
            index,
            item,
            hash: None,
        };
        let covered: Vec<_> = items.iter().enumerate().map(covered).collect();
        let manifest = Manifest::from_items(&covered);
        let failed = |entry: &CommandEntry| (entry.command.clone(), entry.failed);
        let found: Vec<_> = manifest.commands.iter().map(failed).collect();
        let expected = commands
            .iter()
            .map(|(command, failed)| ((*command).to_owned(), *failed));
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(manifest.open.len(), open);
    }

    #[test]
    fn outputs_of_parallel_calls_with_one_id_answer_in_order() {
        let calls = [run("make"), run("make test")];
        let expected = [("make", true), ("make test", false)];
        check(
            &[&calls[..], &[output(true), output(false)]].concat(),
            &expected,
            0,
        );
    }

    #[test]
    fn output_answers_the_nearest_step_with_an_open_call() {
        let items = [run("make"), output(true), run("make test"), output(false)];
        check(&items, &[("make", true), ("make test", false)], 0);
        // A retried call: the output belongs to the last attempt.
        let items = [run("make"), run("make test"), output(true)];
        check(&items, &[("make", false), ("make test", true)], 1);
    }
}
