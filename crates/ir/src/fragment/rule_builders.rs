//! Builders of the fragments that say who the model is, what it must do and what words mean.
//!
//! An optional field is left out when it is empty. Builders with more than two texts take a struct, so that a
//! call names each of them.

use crate::fragment::builtin_types::build_fragment;
use crate::fragment::convert::Children;
use crate::fragment::tree::{Fragment, FragmentData};

/// Builds a fragment of any name over its children. The data is a list even of one child or none; for a lone
/// value use [`Fragment::new`].
///
/// ```
/// use contexture_ir::{fragment, hint, term};
///
/// let domain = fragment("domain", (hint("Amounts are in cents."), term("MRR", "monthly revenue")));
/// assert_eq!(domain.name, "domain");
/// ```
#[must_use]
pub fn fragment(name: impl Into<String>, children: impl Children) -> Fragment {
    Fragment::new(name, FragmentData::Array(children.into_children()))
}

/// Builds a role: what the model is.
#[must_use]
pub fn role(text: impl Into<String>) -> Fragment {
    Fragment::new("role", text.into())
}

/// Builds a hint: something worth knowing.
#[must_use]
pub fn hint(text: impl Into<String>) -> Fragment {
    Fragment::new("hint", text.into())
}

/// Builds a term with its definition.
#[must_use]
pub fn term(name: impl Into<String>, definition: impl Into<String>) -> Fragment {
    build_fragment("term", [name.into().into(), definition.into().into()])
}

/// Builds an alias: another word for something.
#[must_use]
pub fn alias(term: impl Into<String>, meaning: impl Into<String>) -> Fragment {
    build_fragment("alias", [term.into().into(), meaning.into().into()])
}

/// Builds a preference of the person: an aspect and its value.
#[must_use]
pub fn preference(aspect: impl Into<String>, value: impl Into<String>) -> Fragment {
    build_fragment("preference", [aspect.into().into(), value.into().into()])
}

/// Builds a correction: what was misunderstood, and what is right.
#[must_use]
pub fn correction(subject: impl Into<String>, clarification: impl Into<String>) -> Fragment {
    build_fragment(
        "correction",
        [subject.into().into(), clarification.into().into()],
    )
}

/// Builds a quirk: a trap and the way round it.
#[must_use]
pub fn quirk(issue: impl Into<String>, workaround: impl Into<String>) -> Fragment {
    build_fragment("quirk", [issue.into().into(), workaround.into().into()])
}

/// The fields of [`guardrail`].
#[derive(Clone, Debug, Default)]
pub struct Guardrail {
    /// What must or must not happen.
    pub rule: String,
    /// Why. May be empty.
    pub reason: String,
    /// What to do instead. May be empty.
    pub action: String,
}

/// Builds a guardrail: a rule that holds whatever is asked.
#[must_use]
pub fn guardrail(guardrail: Guardrail) -> Fragment {
    let Guardrail {
        rule,
        reason,
        action,
    } = guardrail;
    build_fragment("guardrail", [rule.into(), reason.into(), action.into()])
}

/// The fields of [`explain`].
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// What is explained.
    pub concept: String,
    /// What the concept means.
    pub explanation: String,
    /// What follows from it. May be empty.
    pub therefore: String,
}

/// Builds the explanation of a concept.
#[must_use]
pub fn explain(explanation: Explanation) -> Fragment {
    let Explanation {
        concept,
        explanation,
        therefore,
    } = explanation;
    build_fragment(
        "explain",
        [concept.into(), explanation.into(), therefore.into()],
    )
}

/// The fields of [`clarification`].
#[derive(Clone, Debug, Default)]
pub struct Clarification {
    /// When to ask.
    pub when: String,
    /// What to ask.
    pub ask: String,
    /// Why to ask then.
    pub reason: String,
}

/// Builds a clarification: when to ask back and not to guess.
#[must_use]
pub fn clarification(clarification: Clarification) -> Fragment {
    let Clarification { when, ask, reason } = clarification;
    build_fragment("clarification", [when.into(), ask.into(), reason.into()])
}

/// The fields of [`style_guide`].
#[derive(Clone, Debug, Default)]
pub struct StyleGuide {
    /// What to prefer.
    pub prefer: String,
    /// What never to do. May be empty.
    pub never: String,
    /// What always to do. May be empty.
    pub always: String,
}

/// Builds a style guide: how to write. The fragment's name is `styleGuide`.
#[must_use]
pub fn style_guide(guide: StyleGuide) -> Fragment {
    let StyleGuide {
        prefer,
        never,
        always,
    } = guide;
    // The name is in camel case because stored fragments and rendered tags have it so.
    build_fragment("styleGuide", [prefer.into(), never.into(), always.into()])
}

/// The fields of [`identity`].
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The person's name. May be empty.
    pub name: String,
    /// The person's role. May be empty.
    pub role: String,
}

/// Builds the identity of the person whom the model talks with.
#[must_use]
pub fn identity(identity: Identity) -> Fragment {
    build_fragment("identity", [identity.name.into(), identity.role.into()])
}

/// The fields of [`persona`].
#[derive(Clone, Debug, Default)]
pub struct Persona {
    /// The name the model goes by.
    pub name: String,
    /// Its role. May be empty.
    pub role: String,
    /// What it is after. May be empty.
    pub objective: String,
    /// How it speaks. May be empty.
    pub tone: String,
}

/// Builds a persona: whom the model plays.
#[must_use]
pub fn persona(persona: Persona) -> Fragment {
    let Persona {
        name,
        role,
        objective,
        tone,
    } = persona;
    build_fragment(
        "persona",
        [name.into(), role.into(), objective.into(), tone.into()],
    )
}
