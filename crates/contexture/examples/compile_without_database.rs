//! Compiles a history for another provider within a small window: no database, no async, no network.
//!
//! Run it with `cargo run -p contexture --example compile_without_database`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use contexture::{Catalogue, Compiler, Format, Target, lift};

/// Runs the example.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // A request in OpenAI's format, with a long answer in the middle.
    let long = "A long answer about the tides. ".repeat(200);
    let request = format!(
        r#"{{"messages":[{{"role":"system","content":"You explain the sea."}},
        {{"role":"user","content":"Why are there tides?"}},{{"role":"assistant","content":"{long}"}},
        {{"role":"user","content":"In one sentence, please."}}]}}"#
    );
    let items = lift(Format::OpenAiChat, &request)?.transcript.items;

    // The same history as a request in Anthropic's format, in a window that the long answer does not fit.
    let target = Target::anthropic("claude-sonnet-4-5")
        .window(1_200)
        .reserve(200);
    let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target)?;
    println!("{}", compiled.payload);
    for omitted in &compiled.report.omitted {
        println!(
            "left out: items {}–{} ({:?})",
            omitted.first, omitted.last, omitted.reason
        );
    }
    assert!(compiled.report.totals.tokens <= 1_000);
    Ok(())
}
