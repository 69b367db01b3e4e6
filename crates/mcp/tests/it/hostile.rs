//! Names made to lead elsewhere: they are read by their grammar, looked up, and not there.

use contexture_mcp::Access;
use serde_json::json;

use crate::support::{AIRLINE, Client, SMALL, STRANGE, recorded};

const DIGITS: &str = "0123456789abcdef0123456789abcdef";

fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "../",
        "../../../../etc/passwd",
        "%2e%2e",
        "%2e%2e%2fetc%2fpasswd",
        "..\\",
        "..\\..\\windows",
        "/etc/passwd",
        "//",
        "//host/share",
        "\0",
        "C:",
        "C:\\boot.ini",
        "CON",
        "NUL.txt",
        "",
        ".",
        "~root",
        "{hash}",
        "0123456789ABCDEF0123456789ABCDEF",
    ]
    .map(|rest| format!("context://vfs/{rest}"))
    .to_vec();
    names.push(format!("context://vfs/{}", "a".repeat(5_000)));
    names.push(format!("context://vfs/{DIGITS}\0"));
    names.push(format!("context://vfs/{DIGITS}/../{DIGITS}"));
    names.push(format!("context://vfs/{DIGITS}?conversation=../{SMALL}"));
    names.push(format!(
        "context://vfs/{DIGITS}?conversation={SMALL}&x=/etc/passwd"
    ));
    names.push(format!("context://vfs/{DIGITS}"));
    for rest in ["", "../", "%2e%2e", "a/b", "\0", "small\0", "small/..", "*"] {
        names.push(format!("contexture://conversation/{rest}"));
    }
    names.push(format!("contexture://conversation/{}", "a".repeat(5_000)));
    names.push("file:///etc/passwd".to_owned());
    names.push("http://169.254.169.254/".to_owned());
    names.push(String::new());
    names
}

#[tokio::test]
async fn hostile_names_name_nothing() {
    let client = Client::recorded().await;
    for name in names() {
        let error = client.resource(&name).await.unwrap_err().to_string();
        assert!(error.contains("-32002"), "{name:?}: {error}");
        assert!(error.len() < 800, "{name:?}: {} bytes", error.len());
        let call = json!({ "link": name, "conversation": SMALL });
        let (kind, said) = client.refused("read_link", call).await;
        assert!(
            matches!(kind.as_str(), "bad_name" | "not_found"),
            "{name:?}: {kind} {said}"
        );
        assert!(said.len() < 800, "{name:?}: {} bytes", said.len());
    }
}

#[tokio::test]
async fn a_link_leads_nowhere_outside_its_conversation() {
    let engine = recorded().await;
    let ada = Client::of(&engine, Access::Read).await;
    let eve = contexture::Owner::new("acme/eve").unwrap();
    let eve = Client::of_owner(&engine, eve, Access::Read).await;
    let link = async |client: &Client, id: &str| {
        let page = client
            .ask("read_conversation", json!({ "conversation": id }))
            .await;
        let items = page["items"].as_array().unwrap();
        items
            .iter()
            .find_map(|item| item["link"].as_str())
            .unwrap()
            .to_owned()
    };
    let (mine, theirs) = (link(&ada, SMALL).await, link(&eve, STRANGE).await);
    for (link, conversation) in [
        (&mine, AIRLINE),
        (&theirs, SMALL),
        (&theirs, STRANGE),
        (&mine, STRANGE),
    ] {
        let call = json!({ "link": link, "conversation": conversation });
        assert_eq!(ada.refused("read_link", call).await.0, "not_found");
        let uri = format!("{link}?conversation={conversation}");
        let error = ada.resource(&uri).await.unwrap_err().to_string();
        assert!(error.contains("-32002"), "{error}");
    }
    let both = json!({ "link": format!("{mine}?conversation={SMALL}"), "conversation": AIRLINE });
    assert_eq!(ada.refused("read_link", both).await.0, "bad_arguments");
    let by_itself = json!({ "link": format!("{mine}?conversation={SMALL}") });
    assert_eq!(ada.ask("read_link", by_itself).await["lines"], json!(5_000));
    assert_eq!(
        ada.refused("read_link", json!({ "link": mine })).await.0,
        "bad_arguments"
    );
}
