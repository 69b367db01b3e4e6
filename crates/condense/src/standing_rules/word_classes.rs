//! Classes of words, and the marks that a sentence gets for them.
//!
//! A pattern asks for the letter of a class behind a word, and need not list the hundreds of words of the class.
//!
//! Not here: which words are in a class (`data/rules`).

use std::collections::BTreeMap;

use super::normal_text::plain_text;

/// Marks the beginning of a clause.
pub(super) const HEAD: char = '#';
/// Marks the beginning of a part of a clause.
pub(super) const START: char = '%';
/// Stands between a word and the letters of its classes.
pub(super) const CLASS: char = '/';

/// Words by the classes they belong to.
#[derive(Debug, Default)]
pub(super) struct WordClasses {
    /// The name of each class; its letter is its place.
    names: Vec<String>,
    /// For each first word the words that may follow it, longest first, and the letter of the class.
    words: BTreeMap<String, Vec<(String, char)>>,
    /// What may stand behind a word without changing its class: `-moi`.
    endings: Vec<String>,
}

impl WordClasses {
    pub(super) fn read(lines: &[&str], endings: &[&str]) -> Self {
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
    pub(super) fn patterns(&self) -> BTreeMap<String, String> {
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
    pub(super) fn words_of(&self, class: &str) -> impl Iterator<Item = &str> {
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
    pub(super) fn mark(&self, text: &str, marks: &[(usize, char)]) -> String {
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
