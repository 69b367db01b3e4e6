//! Fragments rendered to text: XML, Markdown, TOML, TOON, YAML, JSON.
