//! Builders of the fragments that explain how to think: examples, workflows, principles, glossaries.

use crate::fragment::builtin_types::build_fragment;
use crate::fragment::convert::object;
use crate::fragment::tree::{Fragment, FragmentData};

/// The fields of [`example`].
#[derive(Clone, Debug, Default)]
pub struct Example {
    /// What is asked.
    pub question: String,
    /// A good answer.
    pub answer: String,
    /// A remark. May be empty.
    pub note: String,
}

/// Builds a question with its good answer.
#[must_use]
pub fn example(example: Example) -> Fragment {
    let Example {
        question,
        answer,
        note,
    } = example;
    build_fragment("example", [question.into(), answer.into(), note.into()])
}

/// The fields of [`workflow`].
#[derive(Clone, Debug, Default)]
pub struct Workflow {
    /// What is to be done.
    pub task: String,
    /// How, step by step.
    pub steps: Vec<String>,
    /// When to begin. May be empty.
    pub triggers: Vec<String>,
    /// A remark. May be empty.
    pub notes: String,
}

/// Builds a task with its steps.
#[must_use]
pub fn workflow(workflow: Workflow) -> Fragment {
    let Workflow {
        task,
        steps,
        triggers,
        notes,
    } = workflow;
    build_fragment(
        "workflow",
        [task.into(), steps.into(), triggers.into(), notes.into()],
    )
}

/// The fields of [`analogy`].
#[derive(Clone, Debug, Default)]
pub struct Analogy {
    /// What is compared.
    pub concepts: Vec<String>,
    /// How the concepts relate.
    pub relationship: String,
    /// What this shows. May be empty.
    pub insight: String,
    /// What follows. May be empty.
    pub therefore: String,
    /// Where the comparison ends. May be empty.
    pub pitfall: String,
}

/// Builds a comparison of concepts.
#[must_use]
pub fn analogy(analogy: Analogy) -> Fragment {
    let Analogy {
        concepts,
        relationship,
        insight,
        therefore,
        pitfall,
    } = analogy;
    build_fragment(
        "analogy",
        [
            concepts.into(),
            relationship.into(),
            insight.into(),
            therefore.into(),
            pitfall.into(),
        ],
    )
}

/// Builds a glossary: terms and the expressions that stand for them, in the order given.
#[must_use]
pub fn glossary<T: Into<String>, E: Into<String>>(
    entries: impl IntoIterator<Item = (T, E)>,
) -> Fragment {
    let entry = |(term, expression): (T, E)| {
        object([("term", term.into()), ("expression", expression.into())])
    };
    // A list of pairs and not an object: a renderer may show each entry as an element of its own, and the order
    // counts.
    Fragment::new(
        "glossary",
        entries.into_iter().map(entry).collect::<FragmentData>(),
    )
}

/// The fields of [`principle`].
#[derive(Clone, Debug, Default)]
pub struct Principle {
    /// Title of the principle.
    pub title: String,
    /// What it says.
    pub description: String,
    /// What follows from it: texts, [`policy`] fragments. May be empty.
    pub policies: Vec<FragmentData>,
}

/// Builds a principle with the policies that follow from it.
#[must_use]
pub fn principle(principle: Principle) -> Fragment {
    let Principle {
        title,
        description,
        policies,
    } = principle;
    build_fragment(
        "principle",
        [title.into(), description.into(), policies.into()],
    )
}

/// The fields of [`policy`].
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// What to do.
    pub rule: String,
    /// Before what. May be empty.
    pub before: String,
    /// Why. May be empty.
    pub reason: String,
    /// Finer policies: texts, fragments. May be empty.
    pub policies: Vec<FragmentData>,
}

/// Builds one policy.
#[must_use]
pub fn policy(policy: Policy) -> Fragment {
    let Policy {
        rule,
        before,
        reason,
        policies,
    } = policy;
    build_fragment(
        "policy",
        [rule.into(), before.into(), reason.into(), policies.into()],
    )
}
