//! The programs in `examples/` run to their end: each asserts what it shows.

#[path = "../../examples/agent_with_approval.rs"]
mod agent_with_approval;
#[path = "../../examples/chat.rs"]
mod chat;
#[path = "../../examples/compile_without_database.rs"]
mod compile_without_database;
#[path = "../../examples/custom_layer.rs"]
mod custom_layer;
#[path = "../../examples/custom_store.rs"]
mod custom_store;
#[path = "../../examples/research_team.rs"]
mod research_team;
#[path = "../../examples/support_desk.rs"]
mod support_desk;

mod runs_across_processes;
mod target_adapter;

#[test]
fn example_chat_runs() {
    chat::main().unwrap();
}

#[test]
fn example_compile_without_database_runs() {
    compile_without_database::main().unwrap();
}

#[test]
fn example_agent_with_approval_runs() {
    agent_with_approval::main().unwrap();
}

#[test]
fn example_custom_store_runs() {
    custom_store::main().unwrap();
}

#[test]
fn example_support_desk_runs() {
    support_desk::main().unwrap();
}

#[test]
fn example_custom_layer_runs() {
    custom_layer::main().unwrap();
}

#[test]
fn example_research_team_runs() {
    research_team::main().unwrap();
}
