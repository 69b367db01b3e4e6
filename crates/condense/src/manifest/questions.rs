//! Questions that stand without an answer where a span ends: of the person to the model, and of the model to the person.
//!
//! Who speaks next is taken to have answered what the other asked before. That is generous, and needs no judgement of what
//! was said.

use crate::extract::decisions::split_sentences;
use crate::manifest::data::ManifestEntry;

/// Length of a question, in bytes; what is longer is cut.
const QUESTION: usize = 240;
/// How many questions of one message are kept, the last ones.
const QUESTIONS: usize = 3;

/// The marks that end a question, in scripts that have one of their own too.
const MARKS: [char; 4] = ['?', '？', '؟', ';'];

/// The questions that were asked last, of each side.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    of_person: Vec<ManifestEntry>,
    of_model: Vec<ManifestEntry>,
}

impl OpenQuestions {
    /// A message of the person, in their own words: it answers the model.
    pub(super) fn add_person(&mut self, index: usize, passages: &[&str]) {
        if passages.iter().all(|passage| passage.trim().is_empty()) {
            return;
        }
        self.of_model.clear();
        let asked = passages.iter().flat_map(|passage| questions(passage));
        self.of_person
            .extend(asked.map(|text| entry(index, "the user asked", text)));
        keep_last(&mut self.of_person);
    }

    /// A message of the model: it answers the person.
    pub(super) fn add_model(&mut self, index: usize, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.of_person.clear();
        self.of_model = questions(text)
            .map(|text| entry(index, "asked the user", text))
            .collect();
        keep_last(&mut self.of_model);
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = ManifestEntry> {
        self.of_person.into_iter().chain(self.of_model)
    }
}

/// The sentences of a text that ask something.
fn questions(text: &str) -> impl Iterator<Item = &str> {
    // A Greek question ends with what is a semicolon elsewhere.
    let asks = |sentence: &&str| {
        let mark = sentence.chars().next_back();
        mark.is_some_and(|mark| MARKS.contains(&mark) && (mark != ';' || is_greek(sentence)))
    };
    split_sentences(text).filter(asks)
}

fn is_greek(sentence: &str) -> bool {
    let mut letters = sentence.chars().filter(|c| c.is_alphabetic());
    letters.any(|c| ('\u{370}'..='\u{3ff}').contains(&c))
}

fn entry(index: usize, who: &str, text: &str) -> ManifestEntry {
    ManifestEntry::once(index, &format!("{who}: {text}"), QUESTION)
}

fn keep_last(questions: &mut Vec<ManifestEntry>) {
    let surplus = questions.len().saturating_sub(QUESTIONS);
    questions.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(questions: OpenQuestions) -> Vec<String> {
        questions.into_entries().map(|entry| entry.text).collect()
    }

    #[test]
    fn a_question_is_open_until_the_other_side_speaks() {
        let mut asked = OpenQuestions::default();
        asked.add_person(0, &["My order is late. Where is it?"]);
        // Steps without words answer nothing.
        asked.add_model(1, " ");
        asked.add_person(2, &["And what does it cost？"]);
        asked.add_person(3, &["Νέα;", "let x = 1;"]);
        assert_eq!(
            texts(asked),
            [
                "the user asked: Where is it?",
                "the user asked: And what does it cost？",
                "the user asked: Νέα;",
            ]
        );
        let mut asked = OpenQuestions::default();
        asked.add_person(0, &["Where is it?"]);
        asked.add_model(1, "In Graz. Shall I have it sent back?");
        assert_eq!(texts(asked), ["asked the user: Shall I have it sent back?"]);
        let mut asked = OpenQuestions::default();
        asked.add_model(0, "Shall I have it sent back?");
        asked.add_person(1, &["Yes."]);
        assert_eq!(texts(asked), [""; 0]);
    }

    #[test]
    fn many_questions_are_the_last_ones() {
        let mut asked = OpenQuestions::default();
        let text: Vec<String> = (0..50).map(|n| format!("Is it {n}?")).collect();
        asked.add_model(0, &text.join(" "));
        let texts = texts(asked);
        assert_eq!(texts.len(), QUESTIONS);
        assert_eq!(texts[0], "asked the user: Is it 47?");
    }
}
