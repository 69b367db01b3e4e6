//! Conversations that are kept, resolved and compiled.
