//! The phrases of one language, read from its data file.
//!
//! A file has sections. `triggers` are words without which no sentence is looked at. `strong` and `plain` are patterns of rules,
//! `facts` of what a person says about themselves, `look-alikes` of what only sounds like one of these. What `no rules`
//! matches is none; what `momentary` matches is no order, and a fact in the same clause is none either. `taken back` are patterns of
//! sentences that take a rule or a fact back, `orders taken back` of those that leave facts alone, `permissions` of those that lift
//! an order without naming it, `facts taken back` of what is so no longer, and `nothing taken back` of what only sounds like one of
//! these: what is allowed once, or no longer wanted. `replaces` are patterns of rules that take others back, `introductions` words
//! behind which a person says their name, which are triggers too, `leads` of lines whose list entries are rules, `requests` of questions that are requests.
//! `common words` say nothing about a rule's matter, `negations` turn it round. `classes`, `lists` and `rewrites` keep the patterns
//! short: the words of a class are marked in the sentence, so that a pattern needs no list of hundreds of verbs; `endings` may stand
//! behind such a word.
//!
//! Not here: which sentences a text has (`normal_text`), and what is made of them (`statement`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use regex::bytes::Regex;

use super::normal_text::plain_text;
use super::patterns::{GAP, Patterns, compile_any, matches};
use super::word_classes::{CLASS, HEAD, START, WordClasses};

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
    /// What holds for the moment only.
    momentary: Patterns,
    /// What takes something back, by what it can take back.
    taken_back: [(TakesBack, Patterns); 4],
    nothing_taken_back: Patterns,
    replaces: Patterns,
    leads: Patterns,
    requests: Patterns,
    /// Words by which a person says their name.
    introductions: Vec<String>,
    common_words: BTreeSet<String>,
    negations: BTreeSet<String>,
    /// Stems of the verbs: they say what to do, and less about the matter than other words.
    verbs: BTreeSet<String>,
}

/// Length of the longest trigger that is looked for only where a word begins, in bytes.
const LONGEST_SHORT_TRIGGER: usize = 6;
/// Stands in a pattern for a space that need not be there, until spaces are replaced.
const OPTIONAL_SPACE: &str = "\t";

/// Words that may stand behind a name.
const NAME_ENDS: &[&str] = &[
    "and", "from", "und", "aus", "von", "y", "e", "de", "et", "-",
];

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

/// What a sentence that takes something back can take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakesBack {
    /// What it speaks of, rules and facts: "forget what I said about".
    Named,
    /// The orders that it speaks of: "forget the rule about".
    Orders,
    /// Orders that it lifts without speaking of them: "you may … again".
    Permits,
    /// What the person said of themselves: "I am no longer".
    OfPerson,
}

/// The words that say what a sentence is about, each by its stem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matter {
    /// Those that say what it is about.
    pub(super) things: BTreeSet<String>,
    /// Those that say what to do.
    pub(super) verbs: BTreeSet<String>,
    /// The first of those.
    first_verb: Option<String>,
    /// Whether a word turns it round: "not", "never", "only".
    pub(super) is_negated: bool,
}

impl Matter {
    /// Whether another sentence is about the same, and at most more.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let is_empty = self.things.is_empty() && self.verbs.is_empty();
        !is_empty && self.things.is_subset(&other.things) && self.verbs.is_subset(&other.verbs)
    }

    /// How many words that say what it is about another sentence shares.
    pub(super) fn shared_things(&self, other: &Self) -> usize {
        self.things.intersection(&other.things).count()
    }

    /// Whether another sentence's first verb, which says what is to be done or not, is among its own. A sentence without verbs
    /// says nothing against it.
    pub(super) fn shares_verb_of(&self, other: &Self) -> bool {
        let first = other.first_verb.as_deref();
        first.is_none_or(|first| {
            self.verbs.is_empty() || self.verbs.iter().any(|own| is_form_of(own, first))
        })
    }
}

/// What the patterns of a language say about a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) is_strong: bool,
    pub(super) is_plain: bool,
    /// Whether it says something about the person, rather than what to do.
    pub(super) is_fact: bool,
    /// Whether it says what to do, whatever it says about the person beside that.
    pub(super) is_order: bool,
    /// What it takes back, if anything.
    pub(super) takes_back: Option<TakesBack>,
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
            momentary: Patterns::new(&of("momentary")),
            taken_back: [
                (TakesBack::Named, "taken back"),
                (TakesBack::Orders, "orders taken back"),
                (TakesBack::Permits, "permissions"),
                (TakesBack::OfPerson, "facts taken back"),
            ]
            .map(|(what, section)| (what, Patterns::new(&of(section)))),
            nothing_taken_back: Patterns::new(&of("nothing taken back")),
            replaces: Patterns::new(&of("replaces")),
            leads: Patterns::new(&of("leads")),
            requests: Patterns::new(&of("requests")),
            introductions: lines("introductions")
                .iter()
                .map(|line| plain_text(line))
                .collect(),
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

    /// Whether a sentence begins with words by which a person says their name, and a name behind them: a word or more with a
    /// capital, and then a mark, a joining word or nothing.
    pub(super) fn introduces_person(&self, sentence: &str, plain: &str) -> bool {
        let word_count = |words: &str| words.split_whitespace().count();
        let words = self.introductions.iter().filter(|words| {
            let rest = plain.strip_prefix(words.as_str());
            rest.is_some_and(|rest| rest.starts_with(' '))
        });
        words.map(|words| word_count(words)).any(|led| {
            let mut behind = sentence.split_whitespace().skip(led).peekable();
            let mut names = 0;
            while let Some(word) = behind.next_if(|word| is_name(word)) {
                names += 1;
                if word.ends_with([',', '.', '!']) {
                    return true;
                }
            }
            let next = behind.peek().copied();
            names > 0 && next.is_none_or(|next| NAME_ENDS.contains(&next))
        })
    }

    /// What a sentence in its plain form says about rules.
    pub(super) fn classify(&self, plain: &str) -> Finding {
        let text = self.rewrite(plain);
        let marked = self.mark(&text);
        let is_question = text.trim_end_matches(['"', ')', ' ']).ends_with('?');
        if is_question && !self.requests.is_match(&marked) {
            return Finding::default();
        }
        let takes_back = match is_question {
            true => None,
            false => self.find_taken_back(&marked),
        };
        let mut finding = Finding {
            takes_back,
            leads_list: text.ends_with(':') && self.leads.is_match(&marked),
            ..Finding::default()
        };
        if takes_back.is_some() {
            return finding;
        }
        // Something stands in the place of what only sounds like a rule: the words around it did not stand side by side.
        let has_look_alike = matches(self.look_alikes.as_ref(), &text);
        let rest = match has_look_alike {
            true => self.mark(&replace_all(self.look_alikes.as_ref(), &text, " ~ ")),
            false => marked.clone(),
        };
        let is_momentary = self.momentary.is_match(&marked);
        finding.is_fact = match is_momentary {
            true => self.has_lasting_fact(&rest),
            false => self.facts.is_match(&rest),
        };
        let is_strong_order = self.strong.is_match(&rest);
        finding.is_order = !is_momentary && (is_strong_order || self.plain.is_match(&rest));
        finding.is_strong = finding.is_fact || (finding.is_order && is_strong_order);
        finding.is_plain = finding.is_fact || finding.is_order;
        // What is taken out may leave the beginning of a clause behind that nobody wrote.
        let rules = [&self.facts, &self.strong, &self.plain];
        let was_none = |text: &str| !rules.iter().any(|rule| rule.is_match(text));
        if finding.is_plain
            && (self.no_rules.is_match(&marked) || (has_look_alike && was_none(&marked)))
        {
            finding.is_fact = false;
            finding.is_order = false;
            finding.is_strong = false;
            finding.is_plain = false;
        }
        finding.replaces = finding.is_plain && self.replaces.is_match(&rest);
        finding
    }

    /// Whether a clause of a marked sentence says a fact, and not that it is so for the moment: "I cannot find the order right now, but
    /// my user id is …".
    fn has_lasting_fact(&self, marked: &str) -> bool {
        let mut clauses = marked.split([HEAD, START]);
        clauses.any(|clause| self.facts.is_match(clause) && !self.momentary.is_match(clause))
    }

    /// What a marked sentence takes back, if anything.
    fn find_taken_back(&self, marked: &str) -> Option<TakesBack> {
        let mut sections = self.taken_back.iter();
        let (what, _) = sections.find(|(_, patterns)| patterns.is_match(marked))?;
        (!self.nothing_taken_back.is_match(marked)).then_some(*what)
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
            if self.negations.contains(word) {
                matter.is_negated = true;
                continue;
            }
            let is_long = word.len() > 2 || word.starts_with(|c: char| c.is_ascii_digit());
            if is_long && !self.common_words.contains(word) {
                let stem = stem_of(word);
                if self.verbs.contains(&stem) {
                    matter.first_verb.get_or_insert_with(|| stem.clone());
                    matter.verbs.insert(stem);
                } else {
                    matter.things.insert(stem);
                }
            }
        }
        matter
    }
}

/// Whether a word may be a part of a name: a capital and small letters behind it.
fn is_name(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.', '!']);
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.clone().next().is_some()
        && letters.all(|c| c.is_lowercase() || "-'’".contains(c))
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

/// Whether two stems are of one verb: `use` and `using`, `uses` and `usar`.
fn is_form_of(one: &str, other: &str) -> bool {
    let root = |stem: &str| {
        stem.trim_end_matches(['a', 'e', 'i', 'o', 'u'])
            .len()
            .max(2)
    };
    let shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    shared.count() >= root(one).min(root(other)).min(4)
}

fn replace_all(pattern: Option<&Regex>, text: &str, with: &str) -> String {
    let Some(pattern) = pattern else {
        return text.to_owned();
    };
    let replaced = pattern.replace_all(text.as_bytes(), with.as_bytes());
    String::from_utf8_lossy(&replaced).into_owned()
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
    // Words by which a person says their name are of no use unless they are looked for.
    let triggers = ["triggers", "introductions"].into_iter();
    let triggers = triggers.filter_map(|name| sections.get(name)).flatten();
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
