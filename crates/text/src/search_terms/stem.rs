//! Stems: one form for the forms of a word, so that a search for `glove` finds *gloves*.
//!
//! The rule goes by the script of a word, never by a guessed language: Latin words get English
//! stems, Cyrillic words Russian ones, other words none. Endings that other languages share are cut
//! too, which only joins words that one query may as well find; the words themselves stay searchable.
//! Irregular English forms (`went`, `children`) have the stem of their base.
//!
//! An index has the stem of each word. It has the word too where a search for a beginning could not find it by its stem
//! ([`index_terms_of`]): two terms for each word would make an index a third larger.
//!
//! Not here: which words of a question are looked for by their stems (the query's rule).

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};

/// Endings of words of which an index has the stem alone, if the stem is the word without it. Inflections and the most
/// frequent derivations of English: three quarters of all words that differ from their stems.
const PLAIN_ENDINGS: [&str; 13] = [
    "al", "ation", "ations", "d", "e", "ed", "er", "ers", "es", "ing", "ion", "ly", "s",
];

/// Length of the longest of them.
const LONGEST_ENDING: usize = 6;

/// Smallest length of a stem that stands alone, in bytes. Shorter ones are words that most texts have: a beginning is
/// also looked for as the stems within it.
const SHORTEST_ALONE: usize = 3;

/// Smallest length of a word with a stem, in characters.
const SHORTEST: usize = 2;

/// Irregular English forms with their bases, sorted. Left out are forms that are more often words of their own, such as
/// *ground*, *bound* and *bit*.
const IRREGULAR: &[(&str, &str)] = &[
    ("ate", "eat"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bent", "bend"),
    ("bitten", "bite"),
    ("blew", "blow"),
    ("blown", "blow"),
    ("bought", "buy"),
    ("bred", "breed"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("clung", "cling"),
    ("crept", "creep"),
    ("dealt", "deal"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("dreamt", "dream"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("dug", "dig"),
    ("dying", "die"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("fled", "flee"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forgave", "forgive"),
    ("forgiven", "forgive"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("geese", "goose"),
    ("given", "give"),
    ("goes", "go"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("halves", "half"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("hung", "hang"),
    ("kept", "keep"),
    ("knelt", "kneel"),
    ("knew", "know"),
    ("knives", "knife"),
    ("known", "know"),
    ("laid", "lay"),
    ("learnt", "learn"),
    ("leaves", "leaf"),
    ("led", "lead"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lit", "light"),
    ("lives", "life"),
    ("loaves", "loaf"),
    ("lost", "lose"),
    ("lying", "lie"),
    ("made", "make"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("overcame", "overcome"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("rang", "ring"),
    ("ridden", "ride"),
    ("risen", "rise"),
    ("rode", "ride"),
    ("rose", "rise"),
    ("rung", "ring"),
    ("said", "say"),
    ("sang", "sing"),
    ("sank", "sink"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("sewn", "sew"),
    ("shaken", "shake"),
    ("shelves", "shelf"),
    ("shone", "shine"),
    ("shook", "shake"),
    ("shot", "shoot"),
    ("shown", "show"),
    ("shrank", "shrink"),
    ("shrunk", "shrink"),
    ("slept", "sleep"),
    ("slid", "slide"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("sown", "sow"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("sprang", "spring"),
    ("sprung", "spring"),
    ("spun", "spin"),
    ("stank", "stink"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("struck", "strike"),
    ("stuck", "stick"),
    ("stunk", "stink"),
    ("sung", "sing"),
    ("sunk", "sink"),
    ("swam", "swim"),
    ("swept", "sweep"),
    ("swore", "swear"),
    ("sworn", "swear"),
    ("swum", "swim"),
    ("swung", "swing"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("thieves", "thief"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("tying", "tie"),
    ("undergone", "undergo"),
    ("understood", "understand"),
    ("underwent", "undergo"),
    ("went", "go"),
    ("wept", "weep"),
    ("withdrawn", "withdraw"),
    ("withdrew", "withdraw"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("woken", "wake"),
    ("wolves", "wolf"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("wove", "weave"),
    ("woven", "weave"),
    ("written", "write"),
    ("wrote", "write"),
];

/// A stem to look for, and the words of texts that have it.
///
/// ```
/// use contexture_text::search_terms::WordStem;
///
/// let stem = WordStem::of("going").unwrap();
/// assert_eq!(stem.as_str(), "go");
/// assert!(stem.matches("went") && stem.matches("goes") && !stem.matches("good"));
/// assert!(WordStem::of("42").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordStem {
    stem: String,
    /// Length in bytes of the beginning that all regular forms share: all but the last character.
    shared: usize,
    /// Irregular forms, which may share nothing.
    forms: Vec<&'static str>,
}

impl WordStem {
    /// Returns the stem of a folded word; `None` for a word that has none, such as a number.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let stem = stem_word(word)?.into_owned();
        let last = stem.chars().next_back().map_or(0, char::len_utf8);
        let shared = stem.len() - last;
        let beginning = stem.as_bytes().get(..shared);
        // By beginning first: stemming all bases would take longer than a whole search.
        let has_stem = |base: &str| {
            base.as_bytes().get(..shared) == beginning
                && stem_word(base).as_deref() == Some(stem.as_str())
        };
        let forms = IRREGULAR.iter().filter(|(_, base)| has_stem(base));
        let forms = forms.map(|(form, _)| *form).collect();
        Some(Self {
            shared,
            forms,
            stem,
        })
    }

    /// Returns the stem.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.stem
    }

    /// Returns beginnings of which each word with this stem has one; an empty one stands for any.
    pub fn beginnings(&self) -> impl Iterator<Item = &str> {
        let shared = self.stem.get(..self.shared).unwrap_or_default();
        [shared].into_iter().chain(self.forms.iter().copied())
    }

    /// Whether a folded word has this stem.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        // Stemming each word of a thousand texts would cost more than the rest of a search. Stemmers cut endings and
        // change at most the last character that stays, so nearly all words are told apart by their beginning.
        let shared = self.stem.as_bytes().get(..self.shared);
        match word.as_bytes().get(..self.shared) == shared {
            true => stem_word(word).as_deref() == Some(self.stem.as_str()),
            false => self.forms.contains(&word),
        }
    }
}

/// Returns the terms that an index has of a folded word: its stem, and the word itself unless the stem stands for it.
///
/// ```
/// use contexture_text::search_terms::index_terms_of;
///
/// let terms = |word| index_terms_of(word).collect::<Vec<_>>();
/// assert_eq!(terms("gloves"), ["glove"]);
/// assert_eq!(terms("went"), ["go", "went"]);
/// assert_eq!(terms("42"), ["42"]);
/// ```
pub fn index_terms_of(word: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let stem = stem_word(word).filter(|stem| stem != word);
    let has_word = stem
        .as_ref()
        .is_none_or(|stem| !stands_for_word(stem, word));
    stem.into_iter()
        .chain(has_word.then_some(Cow::Borrowed(word)))
}

/// Returns the term by which an index is asked for a folded word as it stands: its stem, if the index has no other term
/// of it. Other words may have that term too.
#[must_use]
pub fn literal_index_term(word: &str) -> Cow<'_, str> {
    index_terms_of(word).last().unwrap_or(Cow::Borrowed(word))
}

/// Returns the stems by which an index may have words with this beginning, and which do not begin so themselves: at most
/// seven.
///
/// ```
/// use contexture_text::search_terms::stems_within;
///
/// assert_eq!(stems_within("gloves").collect::<Vec<_>>(), ["glove", "glov"]);
/// assert_eq!(stems_within("city").collect::<Vec<_>>(), ["citi"]);
/// assert_eq!(stems_within("haven").count(), 0);
/// ```
pub fn stems_within(beginning: &str) -> impl Iterator<Item = Cow<'_, str>> {
    // Words with other characters have no stem that stands alone.
    let is_plain = beginning.bytes().all(|byte| byte.is_ascii_lowercase());
    let first = beginning
        .len()
        .saturating_sub(LONGEST_ENDING)
        .max(SHORTEST_ALONE);
    let cut = (first..beginning.len()).rev().filter_map(|at| {
        let (stem, ending) = beginning.split_at_checked(at)?;
        let may_end_so = PLAIN_ENDINGS.iter().any(|plain| plain.starts_with(ending));
        may_end_so.then_some(Cow::Borrowed(stem))
    });
    let replaced = beginning.strip_suffix('y');
    let replaced = replaced.map(|shared| Cow::Owned(format!("{shared}i")));
    cut.chain(replaced).filter(move |_| is_plain)
}

/// Whether an index has no other term of a word than its stem: by it, the word is found by each of its beginnings too
/// ([`stems_within`]).
fn stands_for_word(stem: &str, word: &str) -> bool {
    if stem.len() < SHORTEST_ALONE {
        return false;
    }
    match word.strip_prefix(stem) {
        Some(ending) => PLAIN_ENDINGS.contains(&ending),
        // As in *city* and *citi*.
        None => stem
            .strip_suffix('i')
            .is_some_and(|shared| word.strip_suffix('y') == Some(shared)),
    }
}

/// Returns the stem of a folded word; `None` if the script of the word has no stemmer, or the word is too short.
#[must_use]
pub fn stem_word(word: &str) -> Option<Cow<'_, str>> {
    if word.len() < SHORTEST {
        return None;
    }
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        let base = match IRREGULAR.binary_search_by(|(form, _)| (*form).cmp(word)) {
            Ok(at) => IRREGULAR.get(at).map_or(word, |(_, base)| *base),
            Err(_) => word,
        };
        return Some(Stemmer::new(Algorithm::English).stem(base));
    }
    if word.chars().all(|c| matches!(c, 'а'..='я')) {
        // Folding makes й an и, and the endings that the stemmer knows have й behind a vowel.
        let spelled = restore_short_i(word);
        let stem = Stemmer::new(Algorithm::Russian)
            .stem(&spelled)
            .replace('й', "и");
        return Some(Cow::Owned(stem));
    }
    None
}

/// Makes each и behind a vowel a й.
fn restore_short_i(word: &str) -> String {
    let mut after_vowel = false;
    let restore = |c: char| {
        let restored = if after_vowel && c == 'и' { 'й' } else { c };
        after_vowel = matches!(c, 'а' | 'е' | 'и' | 'о' | 'у' | 'ы' | 'э' | 'ю' | 'я');
        restored
    };
    word.chars().map(restore).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a word is searched by, the index proposes it: its stem, the word, and each beginning of it.
    #[test]
    fn words_are_found_by_what_an_index_has_of_them() {
        let stems = ["glov", "citi", "run", "gener", "hav", "go", "univers", "a"];
        let endings = [
            "", "e", "y", "i", "ns", "ational", "ously", "iness", "ement",
        ];
        let made = stems.iter().flat_map(|stem| {
            let endings = PLAIN_ENDINGS.iter().chain(&endings);
            endings.map(move |ending| format!("{stem}{ending}"))
        });
        let others = [
            "city",
            "cities",
            "visibility",
            "dying",
            "c++",
            "42",
            "книги",
            "東京",
            "v1s",
        ];
        let irregular = IRREGULAR.iter().map(|(form, _)| (*form).to_owned());
        let mut alone = 0;
        for word in made.chain(others.map(str::to_owned)).chain(irregular) {
            let terms: Vec<_> = index_terms_of(&word).collect();
            alone += usize::from(!terms.contains(&Cow::Borrowed(word.as_str())));
            if let Some(stem) = WordStem::of(&word) {
                assert!(stem.matches(&word), "{word}");
                assert!(terms.iter().any(|term| term == stem.as_str()), "{word}");
            }
            assert!(terms.contains(&literal_index_term(&word)), "{word}");
            for (at, c) in word.char_indices() {
                let beginning = &word[..at + c.len_utf8()];
                let found = terms.iter().any(|term| {
                    term.starts_with(beginning) || stems_within(beginning).any(|stem| stem == *term)
                });
                assert!(found, "{word} by {beginning}: {terms:?}");
            }
        }
        assert!(alone > 60, "{alone}");
    }

    #[test]
    fn few_stems_are_looked_for_within_a_beginning() {
        for (beginning, expected) in [
            ("haven", &[][..]),
            ("without", &[]),
            ("theory", &["theori"]),
            ("organizations", &["organization", "organiz"]),
            ("see", &[]),
            ("v1ed", &[]),
            ("книги", &[]),
        ] {
            let found: Vec<_> = stems_within(beginning).collect();
            assert_eq!(found, expected, "{beginning}");
            assert!(found.len() <= LONGEST_ENDING + 1, "{beginning}");
        }
        let longest = PLAIN_ENDINGS.iter().map(|ending| ending.len()).max();
        assert_eq!(longest, Some(LONGEST_ENDING));
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for family in [
            &["glove", "gloves"][..],
            &["rotate", "rotates", "rotating", "rotated"],
            &["city", "cities"],
            &["try", "tries", "tried", "trying"],
            &["die", "dies", "dying", "died"],
            &["go", "goes", "going", "went", "gone"],
            &["buy", "buying", "bought"],
            &["child", "children"],
            &["organization", "organizations"],
            &["possibility", "possibilities", "possible", "possibly"],
            &["книга", "книги", "книгу"],
            &["красивыи", "красивая", "красивого"],
        ] {
            for (form, other) in family.iter().zip(family.iter().cycle().skip(1)) {
                let stem = WordStem::of(form).unwrap();
                assert!(stem.matches(other), "{form} ({stem:?}) and {other}");
            }
        }
    }

    #[test]
    fn only_known_scripts_have_stems() {
        for word in ["", "a", "42", "v2", "東京", "שלום", "σισυφοσ", "c++", "aб"] {
            assert_eq!(stem_word(word), None, "{word}");
        }
    }

    #[test]
    fn irregular_forms_are_sorted() {
        assert!(IRREGULAR.is_sorted_by(|a, b| a.0 < b.0));
    }

    /// The quick comparison of beginnings loses no word.
    #[test]
    fn stems_change_at_most_the_last_character() {
        let roots = [
            "rotat", "happ", "relat", "organ", "hop", "hopp", "cr", "troubl", "siz", "probabl",
            "sens", "general", "oper", "confl", "valenc", "log", "electr", "hope", "good", "decis",
            "form", "trad", "vietnam", "dog", "sk",
        ];
        let endings = [
            "", "e", "s", "es", "ed", "ing", "ings", "ion", "ions", "ional", "ation", "ational",
            "ize", "izer", "ization", "y", "ies", "ied", "ying", "ily", "iness", "ful", "fulness",
            "fully", "ness", "ly", "li", "ism", "ist", "iveness", "ivity", "ously", "ousness",
            "ably", "ability", "ible", "ibility", "entli", "ment", "ements", "ical", "icity",
            "icate", "ative", "al", "ality", "ogi", "ogist", "eed", "eedly", "edly", "ingly",
            "ance", "ence", "er", "ers", "ant", "ent", "ic", "ous", "ive", "ying", "at", "bl",
            "iz",
        ];
        for root in roots {
            for ending in endings {
                let word = format!("{root}{ending}");
                let stem = WordStem::of(&word).unwrap();
                assert!(stem.matches(&word), "{word}: {stem:?}");
            }
        }
    }
}
