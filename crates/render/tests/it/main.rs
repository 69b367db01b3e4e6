//! Rendering, seen from outside.
