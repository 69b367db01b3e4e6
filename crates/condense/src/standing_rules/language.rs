//! The phrases of one language, read from its data file.
//!
//! A file has sections. `triggers` are words without which no sentence is looked at. `strong` and `plain` are patterns of rules,
//! `facts` of what a person says about themselves, `look-alikes` of what only sounds like one of these. `taken back` are patterns of
//! sentences that take a rule back, `orders taken back` of those that leave facts alone, `replaces` of rules that take others back,
//! `leads` of lines whose list entries are rules, `requests` of questions that are requests. `common words` say nothing about a
//! rule's matter, `negations` turn it round. `classes`, `lists` and `rewrites` keep the patterns short: the words of a class are
//! marked in the sentence, so that a pattern needs no list of hundreds of verbs; `endings` may stand behind such a word.
//!
//! Not here: which sentences a text has (`normal_text`), and what is made of them (`statement`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::normal_text::plain_text;

/// Memory that the automaton of one pattern may take, in bytes.
const AUTOMATON_BYTES: usize = 16 << 20;

/// The phrases of one language.
#[derive(Debug)]
pub(super) struct Language {
    rewrites: Vec<(String, String)>,
    classes: WordClasses,
    /// What stands before a clause, with the words that only lead to it.
    head: Option<Regex>,
    start: Option<Regex>,
    strong: Patterns,
    facts: Patterns,
    plain: Patterns,
    look_alikes: Option<Regex>,
    no_rules: Patterns,
    taken_back: Patterns,
    orders_taken_back: Patterns,
    replaces: Patterns,
    leads: Patterns,
    requests: Patterns,
    common_words: BTreeSet<String>,
    negations: BTreeSet<String>,
    /// Stems of the verbs: they say what to do, and less about the matter than other words.
    verbs: BTreeSet<String>,
}

/// Length of the longest trigger that is looked for only where a word begins, in bytes.
const LONGEST_SHORT_TRIGGER: usize = 6;
/// Stands between the halves of a pattern.
const GAP: &str = "\n";
/// Stands in a pattern for a space that need not be there, until spaces are replaced.
const OPTIONAL_SPACE: &str = "\t";
/// Marks the beginning of a clause.
const HEAD: char = '#';
/// Marks the beginning of a part of a clause.
const START: char = '%';
/// Stands between a word and the letters of its classes.
const CLASS: char = '/';

/// The files of all languages.
const FILES: &[&str] = &[
    include_str!("../../data/rules/english.txt"),
    include_str!("../../data/rules/german.txt"),
    include_str!("../../data/rules/spanish.txt"),
    include_str!("../../data/rules/french.txt"),
];

/// A language whose other patterns are built when a sentence needs them: most people write in one or two.
struct LanguageFile {
    file: &'static str,
    triggers: Option<Regex>,
    language: OnceLock<Language>,
}

static LANGUAGES: LazyLock<Vec<LanguageFile>> = LazyLock::new(|| {
    let read = |file: &&'static str| LanguageFile {
        file,
        triggers: compile_any(&triggers_of(&sections_of(file))),
        language: OnceLock::new(),
    };
    FILES.iter().map(read).collect()
});

/// The triggers of all languages together: most texts have none, and are passed over at once.
static ANY_TRIGGER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let files = FILES.iter().map(|file| sections_of(file));
    let triggers: Vec<String> = files.flat_map(|sections| triggers_of(&sections)).collect();
    // Letters of either case, as this is looked for in texts as they were written.
    let any: Vec<String> = triggers.iter().map(|one| format!("(?i){one}")).collect();
    compile_any(&any)
});

/// Whether a text may have a sentence that says something about rules.
pub(super) fn has_trigger(text: &str) -> bool {
    let found = |text: &[u8]| ANY_TRIGGER.as_ref().is_some_and(|any| any.is_match(text));
    match text.is_ascii() {
        true => found(text.as_bytes()),
        false => found(plain_text(text).as_bytes()),
    }
}

/// The languages of which a sentence in its plain form has a trigger.
pub(super) fn languages_of(plain: &str) -> impl Iterator<Item = &'static Language> {
    let languages = LANGUAGES.iter();
    let triggered = languages.filter(move |one| matches(one.triggers.as_ref(), plain));
    triggered.map(|one| one.language.get_or_init(|| Language::read(one.file)))
}

/// The words that say what a sentence is about, each by its stem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matter {
    /// Those that say what it is about.
    pub(super) things: BTreeSet<String>,
    /// Those that say what to do.
    pub(super) verbs: BTreeSet<String>,
    /// Whether a word turns it round: "not", "never", "only".
    pub(super) is_negated: bool,
}

impl Matter {
    /// Whether another sentence is about the same, and at most more.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let is_empty = self.things.is_empty() && self.verbs.is_empty();
        !is_empty && self.things.is_subset(&other.things) && self.verbs.is_subset(&other.verbs)
    }
}

/// What the patterns of a language say about a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) is_strong: bool,
    pub(super) is_plain: bool,
    /// Whether it says something about the person, rather than what to do.
    pub(super) is_fact: bool,
    pub(super) takes_back: bool,
    /// Whether what it takes back is only what to do, and no fact about the person.
    pub(super) takes_orders_back: bool,
    /// Whether what it takes back is replaced by itself.
    pub(super) replaces: bool,
    pub(super) leads_list: bool,
}

impl Language {
    fn read(file: &str) -> Self {
        let sections = sections_of(file);
        let lines = |name: &str| sections.get(name).map_or(&[][..], Vec::as_slice);
        let classes = WordClasses::read(lines("classes"), lines("endings"));
        let mut lists = classes.patterns();
        lists.extend(pairs_of(lines("lists")));
        // The longest first: of several words that fit, the first is taken, and the rest would begin the clause.
        let soft = lists.get("soft").map_or("", String::as_str);
        let mut soft: Vec<&str> = soft.split('|').collect();
        soft.sort_by_key(|words| std::cmp::Reverse(words.len()));
        let soft = soft.join("|");
        lists.insert("head".to_owned(), HEAD.to_string());
        lists.insert("start".to_owned(), format!("[{HEAD}{START}]"));
        let of = |name: &str| {
            let patterns = lines(name).iter().map(|line| expand(line, &lists));
            patterns.collect::<Vec<_>>()
        };
        let led = |before: &str| compile_any(&[format!("(?:{before})(?:(?:{soft})[,:;!.-]? )*")]);
        let words = |name: &str| {
            let words = lines(name).iter().flat_map(|line| line.split_whitespace());
            words.map(plain_text).collect::<BTreeSet<_>>()
        };
        Self {
            rewrites: pairs_of(lines("rewrites")).into_iter().collect(),
            head: led("^|[;:.!?()] ?"),
            start: led(&fold_pattern(
                lines("joints").first().copied().unwrap_or(", | - "),
            )),
            strong: Patterns::new(&of("strong")),
            facts: Patterns::new(&of("facts")),
            plain: Patterns::new(&of("plain")),
            look_alikes: compile_any(&of("look-alikes")),
            no_rules: Patterns::new(&of("no rules")),
            taken_back: Patterns::new(&of("taken back")),
            orders_taken_back: Patterns::new(&of("orders taken back")),
            replaces: Patterns::new(&of("replaces")),
            leads: Patterns::new(&of("leads")),
            requests: Patterns::new(&of("requests")),
            common_words: words("common words"),
            negations: words("negations"),
            verbs: classes.words_of("act").map(stem_of).collect(),
            classes,
        }
    }

    /// A sentence in its plain form as the patterns expect it.
    fn rewrite(&self, plain: &str) -> String {
        // Between spaces, so that an entry can ask for a whole word.
        let mut text = format!(" {plain} ");
        // What is quoted stands for one word, without its marks.
        for quoted in ["\"_\"", "`_`"] {
            text = text.replace(quoted, "_");
        }
        for (from, to) in &self.rewrites {
            if text.contains(from.as_str()) {
                text = text.replace(from.as_str(), to);
            }
        }
        text.trim().to_owned()
    }

    /// What a sentence in its plain form says about rules.
    pub(super) fn classify(&self, plain: &str) -> Finding {
        let text = self.rewrite(plain);
        let marked = self.mark(&text);
        let is_question = text.trim_end_matches(['"', ')', ' ']).ends_with('?');
        if is_question && !self.requests.is_match(&marked) {
            return Finding::default();
        }
        let takes_facts_back = !is_question && self.taken_back.is_match(&marked);
        let takes_orders_back = !is_question && self.orders_taken_back.is_match(&marked);
        let takes_back = takes_facts_back || takes_orders_back;
        let mut finding = Finding {
            takes_back,
            takes_orders_back: !takes_facts_back,
            leads_list: text.ends_with(':') && self.leads.is_match(&marked),
            ..Finding::default()
        };
        if takes_back {
            return finding;
        }
        let rules = [&self.strong, &self.facts, &self.plain];
        if rules.iter().any(|rule| rule.is_match(&marked)) && !self.no_rules.is_match(&marked) {
            // Something stands in the place of what only sounds like a rule: the words around it did not stand side by side.
            let rest = replace_all(self.look_alikes.as_ref(), &text, " ~ ");
            let marked = self.mark(&rest);
            finding.is_fact = self.facts.is_match(&marked);
            finding.is_strong = finding.is_fact || self.strong.is_match(&marked);
            finding.is_plain = finding.is_strong || self.plain.is_match(&marked);
            finding.replaces = finding.is_plain && self.replaces.is_match(&marked);
        }
        finding
    }

    /// A sentence with its beginnings of clauses and its words of classes marked.
    fn mark(&self, text: &str) -> String {
        let mut marks: Vec<(usize, char)> = Vec::new();
        for (pattern, mark) in [(&self.head, HEAD), (&self.start, START)] {
            let found = pattern
                .iter()
                .flat_map(|pattern| pattern.find_iter(text.as_bytes()));
            marks.extend(found.map(|found| (found.end(), mark)));
        }
        marks.sort_unstable();
        self.classes.mark(text, &marks)
    }

    /// The words of a sentence in its plain form that say what it is about.
    pub(super) fn matter_of(&self, plain: &str) -> Matter {
        let text = self.rewrite(plain);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let mut matter = Matter::default();
        for word in words {
            matter.is_negated |= self.negations.contains(word);
            let is_long = word.len() > 2 || word.starts_with(|c: char| c.is_ascii_digit());
            if is_long && !self.common_words.contains(word) {
                let stem = stem_of(word);
                match self.verbs.contains(&stem) {
                    true => matter.verbs.insert(stem),
                    false => matter.things.insert(stem),
                };
            }
        }
        matter
    }
}

/// The beginning of a word that its forms share: `answer` and `answering`, `antworte` and `antworten`.
fn stem_of(word: &str) -> String {
    /// Length of a stem in characters.
    const STEM: usize = 5;
    let word = match word.len() {
        4..=6 => word.strip_suffix('s').unwrap_or(word),
        _ => word,
    };
    word.chars().take(STEM).collect()
}

/// Patterns of one section.
#[derive(Debug)]
struct Patterns {
    any: Option<Regex>,
    /// Any first half of a sequence, and any second half: without both, no sequence is tried.
    halves: (Option<Regex>, Option<Regex>),
    /// Pairs of which the second stands behind the first. Within one pattern, what stands between them would make its automaton
    /// grow with every pair.
    sequences: Vec<(Regex, Regex)>,
}

impl Patterns {
    fn new(patterns: &[String]) -> Self {
        let (pairs, single): (Vec<_>, Vec<_>) =
            patterns.iter().cloned().partition(|one| one.contains(GAP));
        let pairs = pairs.iter().filter_map(|pair| pair.split_once(GAP));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        let compile = |one: &str| compile_any(&[one.to_owned()]);
        let (firsts, seconds): (Vec<_>, Vec<_>) = pairs
            .iter()
            .map(|(first, second)| ((*first).to_owned(), (*second).to_owned()))
            .unzip();
        Self {
            any: compile_any(&single),
            halves: (compile_any(&firsts), compile_any(&seconds)),
            sequences: pairs
                .into_iter()
                .filter_map(|(first, second)| compile(first).zip(compile(second)))
                .collect(),
        }
    }

    fn is_match(&self, text: &str) -> bool {
        let (first, second) = &self.halves;
        matches(self.any.as_ref(), text)
            || (matches(first.as_ref(), text)
                && matches(second.as_ref(), text)
                && self.has_sequence(text.as_bytes()))
    }

    fn has_sequence(&self, text: &[u8]) -> bool {
        self.sequences.iter().any(|(first, second)| {
            let first = first.find(text);
            first.is_some_and(|first| second.is_match_at(text, first.end()))
        })
    }
}

fn matches(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text.as_bytes()))
}

fn replace_all(pattern: Option<&Regex>, text: &str, with: &str) -> String {
    let Some(pattern) = pattern else {
        return text.to_owned();
    };
    let replaced = pattern.replace_all(text.as_bytes(), with.as_bytes());
    String::from_utf8_lossy(&replaced).into_owned()
}

/// Words by the classes they belong to.
#[derive(Debug, Default)]
struct WordClasses {
    /// The name of each class; its letter is its place.
    names: Vec<String>,
    /// For each first word the words that may follow it, longest first, and the letter of the class.
    words: BTreeMap<String, Vec<(String, char)>>,
    /// What may stand behind a word without changing its class: `-moi`.
    endings: Vec<String>,
}

impl WordClasses {
    fn read(lines: &[&str], endings: &[&str]) -> Self {
        let endings = endings.iter().flat_map(|line| line.split_whitespace());
        let mut classes = Self {
            endings: endings.map(str::to_owned).collect(),
            ..Self::default()
        };
        for ((name, words), letter) in lines
            .iter()
            .filter_map(|line| line.split_once('='))
            .zip('a'..='z')
        {
            classes.names.push(name.to_owned());
            for word in words.split(',') {
                let word = plain_text(word.trim());
                let (first, rest) = word.split_once(' ').unwrap_or((&word, ""));
                let entry = classes.words.entry(first.to_owned()).or_default();
                entry.push((rest.to_owned(), letter));
            }
        }
        classes
    }

    /// A pattern for a word of each class, by name; and by `not-` and its name one for any other word with the space behind it.
    fn patterns(&self) -> BTreeMap<String, String> {
        let mut patterns = BTreeMap::new();
        for (name, letter) in self.names.iter().zip('a'..='z') {
            let word = format!("[a-z0-9'-]+{CLASS}[a-z]*{letter}[a-z]*");
            let other = format!("[a-z0-9_'-]+(?:{CLASS}[a-z&&[^{letter}]]+)? [{HEAD}{START}]*");
            patterns.insert(name.clone(), word);
            patterns.insert(format!("not-{name}"), other);
        }
        patterns
    }

    /// The entries of a word: as it stands, behind an elided word (`n'utilise`), or without its ending (`donne-moi`).
    fn entries_of(&self, word: &str) -> Option<&Vec<(String, char)>> {
        let stem = word.split_once('\'').map_or(word, |(_, stem)| stem);
        let whole = self.words.get(word).or_else(|| self.words.get(stem));
        whole.or_else(|| {
            let mut stems = self.endings.iter().filter_map(|end| stem.strip_suffix(end));
            stems.find_map(|stem| self.words.get(stem))
        })
    }

    /// The words of one class that stand alone.
    fn words_of(&self, class: &str) -> impl Iterator<Item = &str> {
        let letter = self
            .names
            .iter()
            .zip('a'..='z')
            .find(|(name, _)| *name == class);
        let letter = letter.map(|(_, letter)| letter);
        let alone = move |entries: &Vec<(String, char)>| {
            entries
                .iter()
                .any(|(rest, own)| rest.is_empty() && Some(*own) == letter)
        };
        self.words
            .iter()
            .filter(move |(_, entries)| alone(entries))
            .map(|(word, _)| word.as_str())
    }

    /// A sentence with the letters of its classes behind each word that has any: `use/a`.
    /// Marks of clauses stand before the words at their places.
    fn mark(&self, text: &str, marks: &[(usize, char)]) -> String {
        let mut marked = String::with_capacity(text.len() + text.len() / 2);
        let mut marks = marks.iter().peekable();
        let mut rest = text;
        while !rest.is_empty() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '\'';
            let gap = rest.find(is_word).unwrap_or(rest.len());
            let (before, from) = rest.split_at(gap);
            let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
            let (word, behind) = from.split_at(end);
            marked.push_str(before);
            let at = text.len() - from.len();
            // A mark behind the last word begins nothing.
            while !word.is_empty()
                && let Some((_, mark)) = marks.next_if(|(place, _)| *place <= at)
            {
                marked.push(*mark);
            }
            marked.push_str(word);
            let mut letters: Vec<char> = Vec::new();
            for (next, letter) in self.entries_of(word).into_iter().flatten() {
                let follows = next.is_empty()
                    || behind.strip_prefix(' ').is_some_and(|behind| {
                        let behind = behind.strip_prefix(next.as_str());
                        behind.is_some_and(|behind| !behind.starts_with(is_word))
                    });
                if follows && !letters.contains(letter) {
                    letters.push(*letter);
                }
            }
            if !letters.is_empty() {
                marked.push(CLASS);
                marked.extend(letters);
            }
            rest = behind;
        }
        marked
    }
}

/// The lines of each section of a file.
fn sections_of(file: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut sections: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut section = "";
    for line in file.lines() {
        let name = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        match name {
            _ if line.is_empty() || line.starts_with(';') => {}
            // A pattern may begin with a class of characters.
            Some(name)
                if name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || " -".contains(c)) =>
            {
                section = name;
            }
            _ => sections.entry(section).or_default().push(line),
        }
    }
    sections
}

fn triggers_of(sections: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
    let triggers = sections.get("triggers").into_iter().flatten();
    let pattern = |trigger: &&str| {
        let plain = plain_text(trigger);
        // A longer word may stand within a compound: `Nussallergie`.
        let begins_word = plain.len() <= LONGEST_SHORT_TRIGGER || plain.contains(' ');
        let begins_word = begins_word && plain.starts_with(|c: char| c.is_ascii_alphanumeric());
        let border = if begins_word { r"\b" } else { "" };
        format!("{border}{}", regex::escape(&plain))
    };
    triggers.map(pattern).collect()
}

/// Lines of a name and what it stands for.
fn pairs_of(lines: &[&str]) -> Vec<(String, String)> {
    let pairs = lines.iter().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, text)| (name.to_owned(), fold_pattern(text)))
        .collect()
}

/// A pattern as it is matched with a marked sentence.
fn expand(pattern: &str, lists: &BTreeMap<String, String>) -> String {
    // Between two words may stand the classes of the first, and the mark of a clause that the second begins.
    let spaced = format!("(?:{CLASS}[a-z]+)? [{HEAD}{START}]*");
    let halves: Vec<String> = fold_pattern(pattern)
        .split(" ... ")
        .map(|half| {
            // A space that need not be there: `time ?zone`.
            let half = half.replace(" ?", OPTIONAL_SPACE);
            let half = half.replace(' ', &spaced);
            half.replace(OPTIONAL_SPACE, &format!("(?:{spaced})?"))
        })
        .collect();
    let mut text = halves.join(GAP);
    for (name, words) in lists {
        text = text.replace(&format!("{{{name}}}"), &format!("(?:{words})"));
    }
    text
}

/// A pattern without accents. Its marks are left alone.
fn fold_pattern(pattern: &str) -> String {
    let mut folded = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        if c.is_ascii() {
            folded.push(c);
        } else {
            super::normal_text::push_plain(c, &mut folded);
        }
    }
    folded
}

/// One pattern for any of several; `None` for none.
fn compile_any(patterns: &[String]) -> Option<Regex> {
    if patterns.is_empty() {
        return None;
    }
    let all: Vec<String> = patterns.iter().map(|one| format!("(?:{one})")).collect();
    let mut builder = RegexBuilder::new(&all.join("|"));
    // Sentences in the plain form are ASCII; only the triggers are looked for in other texts.
    builder.unicode(false).case_insensitive(true);
    builder
        .size_limit(AUTOMATON_BYTES)
        .dfa_size_limit(AUTOMATON_BYTES);
    let compiled = builder.build();
    debug_assert!(
        compiled.is_ok(),
        "a pattern of rules is wrong: {compiled:?}"
    );
    compiled.ok()
}
