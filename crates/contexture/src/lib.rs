//! The context engine for LLM agents: keeps what happened, compiles what the model sees.
