//! The native half of the Python package `contexture`: an engine in the process of the program that imports it.
//!
//! Python calls one function with the name of an operation and a JSON document, and gets JSON back; `operations` has the
//! table. Names, keywords, types and iterators are the Python half, in `bindings/python/contexture`, so that nothing is said twice.
//!
//! What holds at the border:
//!
//! * The interpreter's lock is released while the engine works. A synchronous call looks for signals every 50 ms.
//! * No thread of ours runs Python code, but the one that hands over results of tasks; that one never holds what others wait for.
//! * A fork inherits nothing: `process` and `fork` say how.
//! * A panic becomes an error with the code `internal`.
//!
//! Not here: what an operation does (`contexture-api`, `contexture`).

mod engine;
mod failure;
mod fork;
mod module;
mod operations;
mod process;
mod task;
