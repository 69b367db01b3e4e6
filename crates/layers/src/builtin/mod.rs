//! The layers that are built in. Each is an ordinary [`Layer`](crate::Layer): what they do, a layer of yours can do.
//!
//! Not here: the trait, and the running of hooks.
