//! The pages about clients, `docs/clients`: their programs run as they stand, against the upstream instead of the server.

use std::path::Path;

use contexture_upstream_testkit::{ScriptedProvider, Upstream};

use super::installed::Installed;

/// Where a page says that the server is.
const SERVER: &str = "http://127.0.0.1:8484";
const NAME: Option<&str> = Some("support-42");

fn page(name: &str) -> String {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients");
    std::fs::read_to_string(pages.join(name)).unwrap()
}

/// The first block of a page that is in this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// The program in a page runs, prints an answer, and names its conversation.
async fn check(name: &str, language: &str) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let folder = tempfile::tempdir().unwrap();
    installed.link(folder.path());
    let page = page(name);
    let program = block(&page, language);
    assert!(program.contains(SERVER), "{program}");
    let file = if language == "python" {
        "program.py"
    } else {
        "program.mts"
    };
    let script = folder.path().join(file);
    std::fs::write(&script, program.replace(SERVER, &upstream.base_url())).unwrap();
    let mut command = installed.command(&script, folder.path());
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        command.env(key, "sk-client");
    }
    let output = command.output().await.unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{errors}");
    assert!(said.contains("Answer 1: naïve, 東京, 🦀."), "{said}");
    let received = upstream.received_requests();
    assert!(!received.is_empty());
    for request in received {
        assert_eq!(
            request.header("x-contexture-conversation"),
            NAME,
            "{}",
            request.target
        );
    }
}

#[tokio::test]
async fn python_programs_run_as_they_stand() {
    for page in [
        "openai.md",
        "anthropic.md",
        "google-genai.md",
        "langchain.md",
        "pydantic-ai.md",
    ] {
        check(page, "python").await;
    }
}

#[tokio::test]
async fn typescript_programs_run_as_they_stand() {
    for page in [
        "openai.md",
        "anthropic.md",
        "google-genai.md",
        "ai-sdk.md",
        "tanstack-ai.md",
    ] {
        check(page, "ts").await;
    }
}

/// What a page tells Codex is what the Codex of the tests is told.
#[test]
fn codex_is_configured_as_its_page_says() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python/codex_cli.py");
    let script = std::fs::read_to_string(script)
        .unwrap()
        .replace("{base}", SERVER);
    let page = page("codex.md");
    let mut lines = 0;
    for line in block(&page, "toml")
        .lines()
        .filter(|line| !line.starts_with("env_http_headers"))
    {
        assert!(script.lines().any(|said| said == line), "{line}");
        lines += 1;
    }
    assert!(lines > 5);
}
