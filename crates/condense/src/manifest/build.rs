//! Builds a manifest from items.
//!
//! The items are read once, in order: what the user and the model say, what calls do, and what their
//! outputs report. Reasoning is skipped: it is internal to the model, and its decisions show in messages and calls.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{Extension, FunctionCall, Item, Message, Origin, Part, Role};
use contexture_wire::partner_indices;
use indexmap::IndexMap;

use contexture_text::fact_words::{FactKind, classify_word, extract_facts, normalize_value};
use contexture_text::{one_line, shorten_line};

use crate::extract::call_effect::{ToolHints, is_change};
use crate::extract::changes::{Outcome, key_arguments, outcome_of, returned_ids};
use crate::extract::decisions::{decision_sentences, is_statement, split_sentences};
use crate::extract::errors;
use crate::extract::extension_calls::{CallOutput, ExtensionCall, read_extension_call};
use crate::extract::json_facts::{self, ValuesByName};
use crate::extract::own_words::own_words;
use crate::extract::shell::FileAccess;
use crate::extract::tool_effects::ToolEffects;
use crate::link::Link;
use crate::manifest::data::{
    ChangeOutcome, ChangingCall, CommandEntry, CoveredItem, Fact, FileEntry, LinkEntry, Manifest,
    ManifestEntry, NamedValues, SentenceKind, UserSentence,
};
use crate::manifest::questions::OpenQuestions;
use crate::standing_rules::find_statements;

/// Maximum length stored of a sentence of the user, in bytes.
const SENTENCE: usize = 280;
/// Maximum number of sentences taken from one message that do not hold on: the rest of a long one is pasted text.
const SENTENCES: usize = 12;
/// Maximum number of sentences that hold on, taken from one message.
const STATEMENTS: usize = 48;
/// Maximum length stored of a command, in bytes.
const COMMAND: usize = 200;
/// Maximum length stored of an error line or a task, in bytes.
const ERROR: usize = 240;
/// Maximum number of error lines taken from one output.
const ERRORS: usize = 12;
/// Maximum length of the owner of a number, in bytes.
const OWNER: usize = 64;
/// Minimum length of an output that gets a link, in bytes.
const MIN_LINKED_BYTES: usize = 2_000;
/// Sentences that are equal except for numbers become one from so many on.
const REPEATED: usize = 3;

impl Manifest {
    /// Builds the manifest of a span, in the order of its items. Pass only items that models may read.
    ///
    /// Compactions among the items are not read: what they replace is in the span itself.
    #[must_use]
    pub fn from_items(items: &[CoveredItem<'_>]) -> Self {
        Self::from_items_with(items, &ToolHints::default())
    }

    /// As [`Self::from_items`], with what is known of the tools beside their names.
    #[must_use]
    pub fn from_items_with(items: &[CoveredItem<'_>], hints: &ToolHints) -> Self {
        let mut gathered = ManifestBuilder::new(hints);
        let partners = partner_indices(items.iter().map(|covered| covered.item));
        for (position, (covered, partner)) in items.iter().zip(partners).enumerate() {
            let index = covered.index;
            match covered.item {
                Item::Message(message) => gathered.add_message(covered, message),
                Item::FunctionCall(call) => {
                    let open = gathered.add_call(index, Cow::Borrowed(call));
                    gathered.open_calls.insert(position, open);
                }
                Item::FunctionCallOutput(output) => {
                    let call = partner.and_then(|call| gathered.open_calls.remove(&call));
                    let output = CallOutput {
                        text: covered.item.text(),
                        is_error: output.is_error == Some(true),
                    };
                    gathered.add_output(covered, &output, call);
                }
                Item::Extension(extension) => gathered.add_extension(covered, position, extension),
                // A compaction repeats what the originals say, and reasoning is not a fact.
                Item::Reasoning(_) | Item::Compaction(_) => {}
            }
        }
        gathered.build_manifest(items.len())
    }

    /// Removes the identifiers, numbers, paths, URLs and named values that also occur in `in_view`, the items that stay
    /// visible beside the manifest.
    #[must_use]
    pub fn without_identifiers(mut self, in_view: &[CoveredItem<'_>]) -> Self {
        let view = Self::from_items(in_view);
        let lists = [&view.identifiers, &view.urls, &view.paths];
        let grouped = view.named.iter().chain(&view.numbers);
        let grouped = grouped.flat_map(|group| &group.values);
        let said = lists.into_iter().flatten().chain(grouped);
        let said: BTreeSet<&str> = said.map(|fact| normalize_value(&fact.text)).collect();
        let is_new = |fact: &Fact| !said.contains(normalize_value(&fact.text));
        for list in [&mut self.identifiers, &mut self.urls, &mut self.paths] {
            list.retain(is_new);
        }
        for groups in [&mut self.named, &mut self.numbers] {
            for group in &mut *groups {
                group.values.retain(is_new);
            }
            groups.retain(|group| !group.values.is_empty());
        }
        self
    }

    /// Removes the rules, wishes and facts of the user that standing rules quote beside the manifest. Without this they stand
    /// twice, and one that the host has dropped is still told.
    #[must_use]
    pub fn without_rules(mut self) -> Self {
        self.user_sentences
            .retain(|sentence| sentence.kind != SentenceKind::Rule);
        self
    }

    /// Says by which tool the model can read what the text leaves out.
    #[must_use]
    pub fn with_read_tool(mut self, name: Option<&str>) -> Self {
        self.read_tool = name.map(str::to_owned);
        self
    }
}

/// An error line, with what reported it.
struct ReportedError {
    index: usize,
    times: usize,
    /// Whether what reported it succeeded later.
    is_solved: bool,
}

struct ManifestBuilder<'a> {
    hints: &'a ToolHints,
    user_sentences: Vec<UserSentence>,
    /// How often sentences that do not hold on occur, numbers apart.
    repeats: BTreeMap<String, usize>,
    files: IndexMap<String, FileEntry>,
    commands: IndexMap<String, CommandEntry>,
    errors: IndexMap<String, ReportedError>,
    /// The unsolved errors of each call that may be made again.
    errors_by_call: BTreeMap<String, Vec<String>>,
    tasks: Vec<ManifestEntry>,
    questions: OpenQuestions,
    decisions: IndexMap<String, (usize, usize)>,
    changes: IndexMap<String, ChangingCall>,
    named: ValuesByName,
    identifiers: IndexMap<String, usize>,
    numbers: ValuesByName,
    urls: IndexMap<String, usize>,
    paths: IndexMap<String, usize>,
    links: Vec<LinkEntry>,
    /// Calls without an output so far, by their positions in the span.
    open_calls: BTreeMap<usize, OpenCall<'a>>,
    /// The positions of those that are no function's, by their ids.
    open_extensions: BTreeMap<String, usize>,
    open_file: Option<String>,
}

struct OpenCall<'a> {
    index: usize,
    call: Cow<'a, FunctionCall>,
    command: Option<String>,
    /// The files that it changes if it succeeds. A command has none here: what it changed before it failed stays changed.
    edits: Vec<(FileAccess, String)>,
    /// By which arguments it is known.
    arguments: String,
    is_change: bool,
}

impl OpenCall<'_> {
    /// By what the same call is recognised when it is made again.
    fn key(&self) -> String {
        format!("{} {}", self.call.name, self.call.arguments)
    }

    fn label(&self) -> String {
        format!("{}({})", self.call.name, self.arguments)
    }

    fn change(&self, outcome: ChangeOutcome) -> ChangingCall {
        ChangingCall {
            index: self.index,
            tool: one_line(&self.call.name),
            arguments: self.arguments.clone(),
            returned: Vec::new(),
            outcome,
            reason: None,
            times: 1,
        }
    }
}

/// Whose text facts are read from.
struct TextSource<'s> {
    index: usize,
    /// Who owns the numbers in it.
    owner: &'s str,
}

impl<'a> ManifestBuilder<'a> {
    fn new(hints: &'a ToolHints) -> Self {
        Self {
            hints,
            user_sentences: Vec::new(),
            repeats: BTreeMap::new(),
            files: IndexMap::new(),
            commands: IndexMap::new(),
            errors: IndexMap::new(),
            errors_by_call: BTreeMap::new(),
            tasks: Vec::new(),
            questions: OpenQuestions::default(),
            decisions: IndexMap::new(),
            changes: IndexMap::new(),
            named: ValuesByName::new(),
            identifiers: IndexMap::new(),
            numbers: ValuesByName::new(),
            urls: IndexMap::new(),
            paths: IndexMap::new(),
            links: Vec::new(),
            open_calls: BTreeMap::new(),
            open_extensions: BTreeMap::new(),
            open_file: None,
        }
    }

    fn add_message(&mut self, covered: &CoveredItem<'_>, message: &Message) {
        let index = covered.index;
        let texts = message.content.iter().filter_map(Part::as_text);
        let text = texts.collect::<Vec<_>>().join("\n");
        match message.role {
            Role::User => {
                let owner = "the user";
                self.add_text(&text, &TextSource { index, owner });
                // What programs put into a person's message is not what the person said.
                let origin = covered.origin.unwrap_or(Origin::User);
                let own = own_words(origin, covered.item);
                let rules = find_statements(origin, covered.item).into_iter();
                let rules = rules.filter(|one| one.strength().is_some());
                let rules: BTreeSet<String> = rules.map(|one| one.text).collect();
                self.add_user_words(index, &own, &rules);
                self.questions.add_person(index, &own);
                // A long message may be a pasted log.
                if text.len() > SENTENCE {
                    let lines = errors::find_error_lines(&text);
                    for line in lines.filter(|line| errors::is_log_line(line)).take(ERRORS) {
                        self.add_error(index, line, None);
                    }
                }
            }
            Role::Assistant => {
                let owner = "the assistant";
                self.add_text(&text, &TextSource { index, owner });
                self.questions.add_model(index, &text);
                for sentence in decision_sentences(&text) {
                    let known = self.decisions.entry(one_line(sentence));
                    known.or_insert((index, 0)).1 += 1;
                }
            }
            // Instructions of the host are not history.
            Role::System | Role::Developer => {}
        }
    }

    /// Adds the sentences of a message of the user, of which some are rules.
    fn add_user_words(&mut self, index: usize, passages: &[&str], rules: &BTreeSet<String>) {
        let (mut statements, mut others) = (0, 0);
        for sentence in passages.iter().flat_map(|passage| split_sentences(passage)) {
            let is_rule = |sentence: &str| rules.contains(sentence);
            // The mark of a list is no word of the person's.
            let unmarked = sentence.trim_start_matches(['-', '*', '•', '–', '+', ' ']);
            let kind = if is_rule(sentence) || is_rule(unmarked) {
                SentenceKind::Rule
            } else if is_statement(sentence) {
                SentenceKind::Holds
            } else {
                SentenceKind::Passes
            };
            let (taken, most) = match kind {
                SentenceKind::Holds | SentenceKind::Rule => (&mut statements, STATEMENTS),
                _ => (&mut others, SENTENCES),
            };
            *taken += 1;
            let text = shorten_line(sentence, SENTENCE);
            if *taken > most || text.is_empty() {
                continue;
            }
            if kind == SentenceKind::Passes {
                *self.repeats.entry(without_numbers(&text)).or_default() += 1;
            }
            let times = 1;
            let entry = ManifestEntry { index, text, times };
            self.user_sentences.push(UserSentence { kind, entry });
        }
    }

    /// Adds a call, or an output, that is no function's.
    fn add_extension(&mut self, covered: &CoveredItem<'_>, position: usize, item: &Extension) {
        match read_extension_call(item) {
            Some(ExtensionCall::Call(call)) => {
                // Their ids are apart from those of functions: a provider's own call may share one.
                self.open_extensions.insert(call.call_id.clone(), position);
                let open = self.add_call(covered.index, Cow::Owned(call));
                self.open_calls.insert(position, open);
            }
            Some(ExtensionCall::Output(id, output)) => {
                let call = self.open_extensions.remove(&id);
                let call = call.and_then(|call| self.open_calls.remove(&call));
                self.add_output(covered, &output, call);
            }
            Some(ExtensionCall::Answered(call, output)) => {
                let open = self.add_call(covered.index, Cow::Owned(call));
                match output {
                    Some(output) => self.add_output(covered, &output, Some(open)),
                    None => {
                        self.open_calls.insert(position, open);
                    }
                }
            }
            None => {}
        }
    }

    fn add_call(&mut self, index: usize, call: Cow<'a, FunctionCall>) -> OpenCall<'a> {
        let effects = ToolEffects::of_call(&call);
        let is_edit = |access: FileAccess| access != FileAccess::Reads && effects.command.is_none();
        let mut edits = Vec::new();
        for (access, path) in &effects.files {
            match is_edit(*access) {
                true => edits.push((*access, path.clone())),
                false => self.add_file_access(index, *access, path),
            }
        }
        if effects.opens
            && let Some((_, path)) = effects.files.first()
        {
            self.open_file = Some(path.clone());
        } else if effects.edits_open_file
            && let Some(path) = self.open_file.clone()
        {
            edits.push((FileAccess::Writes, path));
        }
        // Files are listed in the order of their first use.
        for (_, path) in &edits {
            self.file_entry(index, path);
        }
        let command = effects.command.as_deref();
        let command = command.map(|command| shorten_line(command, COMMAND));
        let open = OpenCall {
            index,
            arguments: key_arguments(&call, &effects),
            is_change: is_change(&call, &effects, self.hints),
            call,
            command,
            edits,
        };
        // What a command changed is a change.
        if let Some(command) = open.command.as_ref().filter(|_| !open.is_change) {
            self.add_command(index, command);
        }
        if let Some(tasks) = &effects.tasks {
            let entry = |(text, _): &(String, bool)| ManifestEntry::once(index, text, ERROR);
            // A task list replaces the previous one.
            self.tasks = tasks.iter().filter(|(_, done)| !done).map(entry).collect();
        } else {
            self.add_structured_text(&open.call.arguments, &open);
        }
        open
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
        output: &CallOutput,
        call: Option<OpenCall<'_>>,
    ) {
        let index = covered.index;
        // The flag is independent of the text.
        let (text, failed) = (output.text.as_str(), output.is_error);
        if let Some(entry) = call
            .as_ref()
            .and_then(|call| call.command.as_ref())
            .and_then(|command| self.commands.get_mut(command))
        {
            entry.exit = errors::exit_code(text);
            entry.failed = failed;
        }
        let key = call.as_ref().map(OpenCall::key);
        // Whatever the same call reported before is settled by what it reports now.
        if let Some(key) = &key {
            self.solve_errors(key);
        }
        let mut any = false;
        for line in errors::find_error_lines(text).take(ERRORS) {
            self.add_error(index, line, key.as_deref());
            any = true;
        }
        // Otherwise a failure without a recognised error line would be lost.
        if failed && !any {
            self.add_error(index, text, key.as_deref());
        }
        // What only read has no outcome to tell.
        let can_change = |call: &&OpenCall<'_>| call.is_change || !call.edits.is_empty();
        if let Some(call) = call.as_ref().filter(can_change) {
            let outcome = outcome_of(failed, text, call.command.is_some());
            self.add_edits(call, outcome == Outcome::Succeeded);
            if call.is_change {
                self.add_change(call, outcome, text);
            }
        }
        match &call {
            Some(call) => self.add_structured_text(text, call),
            None => self.add_text(text, &TextSource { index, owner: "" }),
        }
        self.add_link(covered, text, call.map(|call| call.call.name.clone()));
    }

    /// Adds what became of the files that a call was to change.
    fn add_edits(&mut self, call: &OpenCall<'_>, succeeded: bool) {
        for (access, path) in &call.edits {
            match succeeded {
                true => self.add_file_access(call.index, *access, path),
                false => self.file_entry(call.index, path).failed += 1,
            }
        }
    }

    fn add_change(&mut self, call: &OpenCall<'_>, outcome: Outcome, text: &str) {
        let mut change = call.change(ChangeOutcome::Ok);
        match outcome {
            Outcome::Succeeded if call.command.is_none() => {
                change.returned = returned_ids(&call.call, text);
            }
            // What a command prints is not what it made.
            Outcome::Succeeded => {}
            Outcome::Failed(reason) => {
                change.outcome = ChangeOutcome::Failed;
                change.reason = Some(reason);
            }
        }
        self.count_change(change);
    }

    /// Adds a change, or counts it if the same was done before with the same result.
    fn count_change(&mut self, change: ChangingCall) {
        let ChangingCall {
            tool,
            arguments,
            returned,
            outcome,
            reason,
            ..
        } = &change;
        let key = format!("{tool}\n{arguments}\n{returned:?}\n{outcome:?}\n{reason:?}");
        match self.changes.get_mut(&key) {
            Some(known) => {
                known.times += 1;
                known.index = change.index;
            }
            None => {
                self.changes.insert(key, change);
            }
        }
    }

    fn add_error(&mut self, index: usize, line: &str, call: Option<&str>) {
        let text = shorten_line(line, ERROR);
        if text.is_empty() {
            return;
        }
        if let Some(call) = call {
            let known = self.errors_by_call.entry(call.to_owned()).or_default();
            known.push(text.clone());
        }
        let new = ReportedError {
            index,
            times: 0,
            is_solved: false,
        };
        let error = self.errors.entry(text).or_insert(new);
        error.times += 1;
        error.is_solved = false;
    }

    /// Settles what a call reported that is made again.
    fn solve_errors(&mut self, call: &str) {
        for text in self.errors_by_call.remove(call).unwrap_or_default() {
            if let Some(error) = self.errors.get_mut(&text) {
                error.is_solved = true;
            }
        }
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

    /// The entry of a file that a call touches.
    fn file_entry(&mut self, index: usize, path: &str) -> &mut FileEntry {
        let path = one_line(path);
        let entry = self.files.entry(path.clone()).or_insert_with(|| FileEntry {
            path,
            ..FileEntry::default()
        });
        // What became of an edit is told with its output, behind which the file may have been read again.
        entry.index = entry.index.max(index);
        entry
    }

    fn add_file_access(&mut self, index: usize, touch: FileAccess, path: &str) {
        let entry = self.file_entry(index, path);
        match touch {
            FileAccess::Reads => entry.read += 1,
            FileAccess::Writes => entry.written += 1,
            FileAccess::Removes => entry.removed += 1,
        }
    }

    /// Reads the facts of a text: of JSON by member names, of anything else by words.
    fn add_structured_text(&mut self, text: &str, call: &OpenCall<'_>) {
        let index = call.index;
        let owner = shorten_line(&call.label(), OWNER);
        let source = TextSource {
            index,
            owner: &owner,
        };
        let mut named = std::mem::take(&mut self.named);
        let before: Option<ValuesByName> = call.is_change.then(ValuesByName::new);
        let read = match before {
            None => json_facts::collect_json_facts(text, index, &mut named, &mut |text| {
                self.add_text(text, &source);
            }),
            // The line of the change tells what was done; of the rest only what can be asked for is kept.
            Some(mut facts) => {
                let read = json_facts::collect_json_facts(text, index, &mut facts, &mut |_| {});
                keep_identifiers(facts, &mut named);
                read
            }
        };
        self.named = named;
        if read.is_none() {
            self.add_text(text, &source);
        }
    }

    fn add_text(&mut self, text: &str, source: &TextSource<'_>) {
        let TextSource { index, owner } = *source;
        for line in text.lines() {
            for (kind, word) in extract_facts(strip_line_number(line)) {
                let values = match kind {
                    FactKind::Url => &mut self.urls,
                    FactKind::Path => &mut self.paths,
                    FactKind::Identifier => &mut self.identifiers,
                    // A number alone says nothing.
                    FactKind::Number if owner.is_empty() => continue,
                    FactKind::Number => match self.numbers.get_mut(owner) {
                        Some(values) => values,
                        None => self.numbers.entry(owner.to_owned()).or_default(),
                    },
                };
                if !values.contains_key(word) {
                    values.insert(word.to_owned(), index);
                }
            }
        }
    }

    fn build_manifest(mut self, items: usize) -> Manifest {
        for call in std::mem::take(&mut self.open_calls).into_values() {
            // In doubt it changed them.
            self.add_edits(&call, true);
            if call.is_change {
                self.count_change(call.change(ChangeOutcome::Unanswered));
            } else {
                let text = format!("no output of {}", call.label());
                self.tasks
                    .push(ManifestEntry::once(call.index, &text, ERROR));
            }
        }
        self.tasks
            .extend(std::mem::take(&mut self.questions).into_entries());
        // Files and commands have lists of their own.
        let (files, commands) = (self.files, self.commands);
        let is_listed = |value: &str| files.contains_key(value) || commands.contains_key(value);
        let named = unlisted_values(self.named, is_listed);
        // A value is more useful with its name than in a plain list.
        let known: BTreeSet<&str> = named
            .iter()
            .flat_map(|group| group.values.iter().map(|fact| normalize_value(&fact.text)))
            .collect();
        let is_unnamed = |value: &str| !known.contains(normalize_value(value));
        let numbers = unlisted_values(self.numbers, |value| !is_unnamed(value));
        let unnamed = |values: IndexMap<String, usize>| -> Vec<Fact> {
            let facts = values.into_iter().filter(|(text, _)| is_unnamed(text));
            facts.map(|(text, index)| Fact { index, text }).collect()
        };
        let (identifiers, urls) = (unnamed(self.identifiers), unnamed(self.urls));
        let mut paths = unnamed(self.paths);
        paths.retain(|path| !files.contains_key(&path.text));
        let errors = self
            .errors
            .into_iter()
            .filter(|(_, error)| !error.is_solved);
        Manifest {
            items,
            user_sentences: fold_repeats(self.user_sentences, &self.repeats),
            decisions: into_entries(self.decisions.into_iter()),
            changes: self.changes.into_values().collect(),
            open: self.tasks,
            errors: into_entries(errors.map(|(text, error)| (text, (error.index, error.times)))),
            files: files.into_values().collect(),
            commands: commands.into_values().collect(),
            identifiers,
            numbers,
            urls,
            paths,
            links: self.links,
            named,
            read_tool: None,
        }
    }
}

/// Makes one of sentences that are said again and again: the newest of them, with their number. What holds on is made one
/// only where it is the same to the letter.
fn fold_repeats(said: Vec<UserSentence>, repeats: &BTreeMap<String, usize>) -> Vec<UserSentence> {
    let mut kept: IndexMap<String, UserSentence> = IndexMap::new();
    for mut statement in said {
        let plain = without_numbers(&statement.entry.text);
        let is_repeated = statement.kind == SentenceKind::Passes
            && repeats.get(&plain).is_some_and(|times| *times >= REPEATED);
        let key = match is_repeated {
            true => {
                statement.kind = SentenceKind::Repeats;
                plain
            }
            false => statement.entry.text.clone(),
        };
        // Removed and added again, as the newest counts. The order is that of the newest ones then.
        if let Some(before) = kept.get_mut(&key) {
            statement.entry.times += before.entry.times;
            *before = statement;
        } else {
            kept.insert(key, statement);
        }
    }
    let mut kept: Vec<UserSentence> = kept.into_values().collect();
    kept.sort_by_key(|statement| statement.entry.index);
    kept
}

/// A sentence in lower case without its digits and its marks.
fn without_numbers(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphabetic() || *c == ' ');
    letters.flat_map(char::to_lowercase).collect()
}

/// Adds those facts that are identifiers.
fn keep_identifiers(facts: ValuesByName, named: &mut ValuesByName) {
    for (name, values) in facts {
        let identifiers = values.into_iter().filter(|(value, _)| {
            !value.contains(char::is_whitespace)
                && matches!(
                    classify_word(value),
                    Some(FactKind::Identifier | FactKind::Url | FactKind::Path)
                )
        });
        for (value, index) in identifiers {
            let known = named.entry(name.clone()).or_default();
            known.entry(value).or_insert(index);
        }
    }
}

/// Returns the named values that are not in another list, each on one line.
fn unlisted_values(named: ValuesByName, is_listed: impl Fn(&str) -> bool) -> Vec<NamedValues> {
    let named = named.into_iter().map(|(name, values)| NamedValues {
        name: one_line(&name),
        values: values
            .into_iter()
            .map(|(value, index)| Fact {
                index,
                text: one_line(&value),
            })
            .filter(|fact| !is_listed(&fact.text))
            .collect(),
    });
    named.filter(|group| !group.values.is_empty()).collect()
}

fn into_entries(seen: impl Iterator<Item = (String, (usize, usize))>) -> Vec<ManifestEntry> {
    seen.map(|(text, (index, times))| ManifestEntry { index, text, times })
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
    use contexture_ir::{FunctionCallOutput, Output};

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

    /// Checks what became of the commands, which change something as far as their words show.
    fn check(items: &[Item], expected: &[(&str, ChangeOutcome)]) {
        let manifest = Manifest::from_items(&CoveredItem::of_items(items));
        let found = manifest.changes.iter();
        let found: Vec<_> = found
            .map(|change| (change.arguments.as_str(), change.outcome))
            .collect();
        assert_eq!(found, expected);
        assert!(manifest.open.is_empty() && manifest.commands.is_empty());
    }

    #[test]
    fn outputs_of_parallel_calls_with_one_id_answer_in_order() {
        let calls = [run("make"), run("make test")];
        check(
            &[&calls[..], &[output(true), output(false)]].concat(),
            &[
                ("make", ChangeOutcome::Failed),
                ("make test", ChangeOutcome::Ok),
            ],
        );
    }

    #[test]
    fn output_answers_the_nearest_step_with_an_open_call() {
        let items = [run("make"), output(true), run("make test"), output(false)];
        check(
            &items,
            &[
                ("make", ChangeOutcome::Failed),
                ("make test", ChangeOutcome::Ok),
            ],
        );
        // A retried call: the output belongs to the last attempt.
        let items = [run("make"), run("make test"), output(true)];
        check(
            &items,
            &[
                ("make test", ChangeOutcome::Failed),
                ("make", ChangeOutcome::Unanswered),
            ],
        );
    }

    #[test]
    fn errors_are_gone_once_the_same_call_succeeds() {
        let read = |text: &str| -> [Item; 2] {
            [
                FunctionCall::new("c", "get_page", r#"{"n":1}"#).into(),
                FunctionCallOutput::new("c", Output::Text(text.to_owned())).into(),
            ]
        };
        let manifest = |items: &[Item]| {
            let manifest = Manifest::from_items(&CoveredItem::of_items(items));
            manifest
                .errors
                .iter()
                .map(|error| error.text.clone())
                .collect::<Vec<_>>()
        };
        let [failed, fine] = [read("error: timed out"), read("all well")];
        assert_eq!(manifest(&failed), ["error: timed out"]);
        assert!(manifest(&[failed.clone(), fine.clone()].concat()).is_empty());
        assert_eq!(manifest(&[fine, failed].concat()), ["error: timed out"]);
    }

    #[test]
    fn what_is_said_again_and_again_is_one_entry() {
        let says = |text: String| Item::from(Message::text(Role::User, text));
        let mut items: Vec<Item> = (0..5)
            .map(|step| says(format!("Step {step}: go on.")))
            .collect();
        items.push(says("My limit is 100 euros.".to_owned()));
        items.push(says("My limit is 200 euros.".to_owned()));
        let said = Manifest::from_items(&CoveredItem::of_items(&items)).user_sentences;
        let said: Vec<_> = said
            .iter()
            .map(|one| (one.entry.text.as_str(), one.entry.times))
            .collect();
        let expected = [
            ("Step 4: go on.", 5),
            ("My limit is 100 euros.", 1),
            ("My limit is 200 euros.", 1),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_failed_edit_is_not_listed_as_edited() {
        let edit = |output: FunctionCallOutput| -> [Item; 2] {
            let call = FunctionCall::new("c", "Edit", r#"{"file_path":"a.rs"}"#);
            [call.into(), output.into()]
        };
        let say = |text: &str| FunctionCallOutput::new("c", Output::Text(text.to_owned()));
        let mut failed = say("String to replace not found in file.");
        failed.is_error = Some(true);
        let files = |items: &[Item]| {
            let mut files = Manifest::from_items(&CoveredItem::of_items(items)).files;
            let file = files.remove(0);
            (file.written, file.failed)
        };
        let (failed, fine) = (edit(failed), edit(say("The file a.rs has been updated.")));
        assert_eq!(files(&failed), (0, 1));
        assert_eq!(files(&fine), (1, 0));
        assert_eq!(files(&[failed.clone(), fine].concat()), (1, 1));
        // Without an output it may have been edited.
        assert_eq!(files(&failed[..1]), (1, 0));
        let text = Manifest::from_items(&CoveredItem::of_items(&failed)).to_string();
        assert!(text.contains("Files:\n edit failed: a.rs"), "{text}");
    }

    #[test]
    fn rules_of_every_language_are_told_unless_quoted_elsewhere() {
        let items = [
            "Wir nehmen zuerst Porto. Benutze niemals Emojis!",
            "- n'utilise jamais de tableaux\n- et corrige le test",
        ];
        let items = items.map(|text| Item::from(Message::text(Role::User, text)));
        let manifest = Manifest::from_items(&CoveredItem::of_items(&items));
        let rules = manifest.user_sentences.iter();
        let rules = rules.filter(|one| one.kind == SentenceKind::Rule);
        let rules: Vec<&str> = rules.map(|one| one.entry.text.as_str()).collect();
        assert_eq!(
            rules,
            ["Benutze niemals Emojis!", "- n'utilise jamais de tableaux"]
        );
        let rest = manifest.without_rules().to_string();
        assert!(rest.contains("Porto") && !rest.contains("Emojis"), "{rest}");
    }
}
