//! What was said once and is asked for later: questions to recorded sessions whose answers are known.
//!
//! A fact is a word with a digit, or a name, that stands in few sessions: in those of one task. It is
//! asked for with a message of the person who repeats it later, as it was said; and once more without
//! the facts, so that only what surrounds them is left to find them by. The evidence is what others than
//! people said with the fact in it: a tool's output, a model's answer.
//!
//! Not here: looking for it.

use std::collections::{BTreeMap, BTreeSet};

/// Text of one message of a session.
#[derive(Clone, Debug)]
pub struct SessionText {
    /// Speaker of the text.
    pub by: Speaker,
    /// Words of the text, as recorded.
    pub text: String,
}

/// Speaker of a text in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person that uses the agent.
    Person,
    /// A model or a tool.
    Other,
}

/// A question with a known answer in the sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Index of the session in which it is asked.
    pub session: usize,
    /// Index of the text that asks it, within the session.
    pub text_index: usize,
    /// Texts that contain the fact and are not by a person, later texts of the same session
    /// excluded: indices of session and text.
    pub evidence: Vec<(usize, usize)>,
    /// Text that asks, as the person wrote it.
    pub text: String,
    /// The same text without the facts.
    pub without: String,
}

/// Largest number of sessions in which a fact may occur: each task was tried four times.
const MAX_FACT_SESSIONS: usize = 4;

/// Returns the questions to sessions, at most one for each fact of a session.
#[must_use]
pub fn recall_questions(sessions: &[Vec<SessionText>]) -> Vec<Question> {
    // Where each word stands: sessions and texts.
    let mut homes: BTreeMap<&str, BTreeSet<(usize, usize)>> = BTreeMap::new();
    for (session, texts) in sessions.iter().enumerate() {
        for (number, said) in texts.iter().enumerate() {
            for word in tokenize_text(&said.text).filter(|word| is_informative(word)) {
                homes.entry(word).or_default().insert((session, number));
            }
        }
    }
    let few = |home: &BTreeSet<(usize, usize)>| {
        let sessions: BTreeSet<usize> = home.iter().map(|(session, _)| *session).collect();
        sessions.len() <= MAX_FACT_SESSIONS
    };
    // A word in many sessions is vocabulary and finds nothing in particular.
    homes.retain(|_, home| few(home));
    let mut questions = Vec::new();
    for (session, texts) in sessions.iter().enumerate() {
        // A fact is asked for once a session: later repetitions would be the same question.
        let mut known = BTreeSet::new();
        let people = texts.iter().enumerate();
        for (number, said) in people.filter(|(_, said)| said.by == Speaker::Person) {
            let facts: BTreeMap<&str, &BTreeSet<(usize, usize)>> = tokenize_text(&said.text)
                .filter_map(|word| Some((word, homes.get(word)?)))
                .collect();
            let first =
                |home: &BTreeSet<(usize, usize)>| home.range((session, 0)..).next().copied();
            let question_place = (session, number);
            // Only a fact that stood earlier can be recalled from the history.
            let repeated = facts
                .iter()
                .find(|(_, home)| first(home) < Some(question_place));
            let Some((_, home)) = repeated.filter(|(fact, _)| known.insert(**fact)) else {
                continue;
            };
            let is_record =
                |(session, text): &&(usize, usize)| sessions[*session][*text].by == Speaker::Other;
            // Later texts repeat the question and would make finding them trivial.
            let later = |at: &&(usize, usize)| at.0 == session && at.1 > number;
            let evidence = home.iter().filter(is_record).filter(|at| !later(at));
            let rest = said.text.split_inclusive(is_separator);
            let rest =
                rest.filter(|piece| !facts.contains_key(piece.trim_end_matches(is_separator)));
            questions.push(Question {
                session,
                text_index: number,
                evidence: evidence.copied().collect(),
                text: said.text.clone(),
                without: rest.collect(),
            });
        }
    }
    // A fact that only people ever said has no evidence to find.
    questions.retain(|question| !question.evidence.is_empty());
    questions
}

fn is_separator(c: char) -> bool {
    !c.is_alphanumeric() && c != '_'
}

fn tokenize_text(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_separator).filter(|word| !word.is_empty())
}

/// A number of three digits or more, an identifier, a name.
fn is_informative(word: &str) -> bool {
    let long = word.chars().count() >= 3;
    long && (word.contains(|c: char| c.is_ascii_digit()) || word.starts_with(char::is_uppercase))
}
