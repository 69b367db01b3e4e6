//! Pages in a real browser: both colour schemes, three widths, no fault of accessibility, no request to elsewhere.
//!
//! The pictures are kept in `target/inspector`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use contexture::Engine;
use contexture_upstream_testkit::{ScriptedProvider, Upstream};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use super::{all_calls, recorded_calls};
use crate::clients::installed::Installed;
use crate::messages::talk;
use crate::proxy::configuration;
use crate::running::waiting;
use crate::test_support::Stand;

const PACKAGES: &str = "CONTEXTURE_TEST_BROWSER";
pub(super) const CHROMIUM: &str = "CONTEXTURE_TEST_CHROMIUM";

/// Where what drives the browser is; nothing if these tests are to be left out.
pub(super) fn find_packages() -> Option<PathBuf> {
    let Some(packages) = std::env::var_os(PACKAGES) else {
        panic!(
            "there is no browser: run `cargo xtask test -p contexture-server`, which installs one, or set {PACKAGES}=skip to leave \
             out what it shows"
        )
    };
    (packages != "skip").then(|| packages.into())
}

#[tokio::test]
async fn people_see_every_screen_and_move_through_calls() {
    let Some(packages) = find_packages() else {
        return;
    };
    let proxied = recorded_calls(Engine::in_memory(), 30, "").await;
    let stand = &proxied.stand;
    // Before others are made: the newest of these is the last of the conversation.
    let calls = all_calls(stand).await;
    let script = "<script>alert(1)</script><img src=x onerror=alert(2)> \u{202e}gnp.exe";
    talk(
        stand,
        "hostile",
        &[
            script,
            &"long output without end ".repeat(20_000),
            "Nenne mich Ada.",
        ],
    )
    .await;
    waiting(stand, "hostile").await;
    let id = |at: usize| calls[at]["id"].as_str().unwrap();
    let conversation = calls[0]["conversation"].as_str().unwrap();
    let run = stand.get("/api/v1/runs").await.ok()["runs"][0]["run"].clone();
    let parts = calls[0]["band"]["parts"].as_array().unwrap();
    let hidden = parts.iter().position(|part| part["omitted_tokens"] != 0);
    let paths = [
        "/ui/".to_owned(),
        "/ui/?q=depot".to_owned(),
        format!("/ui/c/{conversation}"),
        "/ui/c/hostile".to_owned(),
        format!("/ui/c/{conversation}/memory"),
        format!("/ui/c/{conversation}?part={}", hidden.unwrap() + 1),
        format!("/ui/call/{}", id(0)),
        format!("/ui/call/{}/what-if?window=9k&keep_recent=2", id(0)),
        format!("/ui/compare?a={}&b={}", id(1), id(0)),
        "/ui/money".to_owned(),
        "/ui/runs".to_owned(),
        format!("/ui/runs/hostile/{}", run.as_str().unwrap()),
        "/ui/skills".to_owned(),
    ];
    let told = look(&packages, &stand.url(""), conversation, &paths).await;
    let faults: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("fault "))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let rate = told
        .lines()
        .find_map(|line| line.strip_prefix("measured calls_a_second "));
    // Printed and not asserted: how many it is depends on what else this machine does.
    println!("{} calls a second", rate.unwrap());
}

/// Lets the browser look at these pages; returns what it says.
async fn look(packages: &Path, base: &str, conversation: &str, paths: &[String]) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pictures = manifest.join("../../target/inspector");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut node = script(packages, "look.mjs");
    node.args([base]).arg(pictures);
    node.arg(std::env::var_os(CHROMIUM).unwrap())
        .arg(conversation)
        .args(paths);
    run_script(node).await
}

/// Runs a script to its end; returns what it says.
pub(super) async fn run_script(mut node: Command) -> String {
    let output = node.stdin(Stdio::null()).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    told
}

/// A command that runs a script with what drives the browser.
pub(super) fn script(packages: &Path, name: &str) -> Command {
    // Beside its packages, where Node looks for them.
    let script = packages.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    std::fs::copy(source.join(name), &script).unwrap();
    let node = match std::env::var_os("CONTEXTURE_TEST_CLIENTS") {
        Some(clients) => Path::new(&clients).join("python/bin/node"),
        None => "node".into(),
    };
    let mut node = Command::new(node);
    node.arg(script).kill_on_drop(true);
    node
}

/// A page that is left open shows answers as they come and says what is new; it finds its way back to a server that was restarted,
/// and misses nothing of what happened meanwhile.
#[tokio::test]
async fn an_open_page_stays_right_while_the_server_restarts() {
    let Some(packages) = find_packages() else {
        return;
    };
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let config = configuration(&upstream.base_url(), "");
    let engine = Engine::in_memory();
    let mut stand = Stand::over(engine.clone(), &config).await;
    let (address, base) = (stand.address, stand.url(""));
    let mut node = script(&packages, "live.mjs");
    node.arg(&base).arg(std::env::var_os(CHROMIUM).unwrap());
    let mut node = node
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    let mut told = BufReader::new(node.stdout.take().unwrap()).lines();
    let mut faults = Vec::new();
    while let Some(line) = told.next_line().await.unwrap() {
        if line != "restart" {
            faults.push(line);
            continue;
        }
        stand.stop();
        stand.stopped().await;
        stand = Stand::at(address, engine.clone(), &config).await;
        // A run goes on while the page has not come back yet.
        waiting(&stand, "live").await;
        input.write_all(b"restarted\n").await.unwrap();
    }
    let ended = node.wait().await.unwrap();
    assert!(
        ended.success() && faults.is_empty(),
        "{}",
        faults.join("\n")
    );
}

/// The module is plain JavaScript; TypeScript checks the types in its comments.
#[tokio::test]
async fn the_module_has_sound_types() {
    let Some(clients) = Installed::find() else {
        return;
    };
    let (packages, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    clients.link(packages.path());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Not beside the packages: their types of Node are not those of a browser.
    let module = folder.path().join("inspector.js");
    std::fs::copy(manifest.join("../inspector/assets/inspector.js"), &module).unwrap();
    let compiler = packages.path().join("node_modules/typescript/lib/tsc.js");
    let options = [
        "--checkJs",
        "--noEmit",
        "--strict",
        "--target",
        "es2022",
        "--lib",
        "es2022,dom,dom.iterable",
    ];
    let output = clients
        .command(&compiler, folder.path())
        .args(options)
        .arg(&module)
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
