//! Pages in a real browser: both colour schemes, three widths, no fault of accessibility, no request to elsewhere.
//!
//! The pictures are kept in `target/inspector`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use contexture::Engine;
use tokio::process::Command;

use super::{all_calls, recorded_calls};
use crate::clients::installed::Installed;
use crate::messages::talk;
use crate::running::waiting;

const PACKAGES: &str = "CONTEXTURE_TEST_BROWSER";
const CHROMIUM: &str = "CONTEXTURE_TEST_CHROMIUM";

/// Where what drives the browser is; nothing if these tests are to be left out.
fn find_packages() -> Option<PathBuf> {
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
    let paths = [
        "/ui/".to_owned(),
        "/ui/?q=depot".to_owned(),
        format!("/ui/c/{conversation}"),
        "/ui/c/hostile".to_owned(),
        format!("/ui/c/{conversation}/memory"),
        format!("/ui/call/{}", id(0)),
        format!("/ui/compare?a={}&b={}", id(1), id(0)),
        "/ui/money".to_owned(),
        "/ui/runs".to_owned(),
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
    // Beside its packages, where Node looks for them.
    let script = packages.join("look.mjs");
    std::fs::copy(manifest.join("tests/browser/look.mjs"), &script).unwrap();
    let mut node = Command::new("node");
    if let Some(clients) = std::env::var_os("CONTEXTURE_TEST_CLIENTS") {
        node = Command::new(Path::new(&clients).join("python/bin/node"));
    }
    node.arg(script).args([base]).arg(pictures);
    node.arg(std::env::var_os(CHROMIUM).unwrap())
        .arg(conversation)
        .args(paths);
    let output = node
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    told
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
