//! Items, parts, fragments and ids: the vocabulary every other Contexture crate shares.
