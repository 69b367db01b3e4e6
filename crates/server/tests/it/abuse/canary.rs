//! A secret, and every way in which it could be written down.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A secret that is nowhere else.
pub(super) struct Canary {
    name: &'static str,
    forms: Vec<String>,
}

impl Canary {
    pub(super) fn new(name: &'static str, secret: &str) -> Self {
        let bytes = secret.as_bytes();
        let hexadecimal = |prefix: &str| -> String {
            let digits = bytes.iter().map(|byte| format!("{prefix}{byte:02x}"));
            digits.collect()
        };
        let query = reqwest::Url::parse_with_params("http://localhost/", [("", secret)]).unwrap();
        let escaped = query
            .query()
            .unwrap_or_default()
            .trim_start_matches('=')
            .to_owned();
        let mut forms = vec![
            secret.to_owned(),
            secret.chars().rev().collect(),
            escaped.clone(),
            escaped.to_lowercase(),
            hexadecimal(""),
            hexadecimal("").to_uppercase(),
            hexadecimal("%"),
            format!("{bytes:?}"),
        ];
        // Where in a text it begins decides how it looks in Base64; what is the same wherever that is, is looked for.
        for skipped in 0..3 {
            let whole = (bytes.len() - skipped) / 3 * 3;
            let inner = &bytes[skipped..skipped + whole];
            forms.push(STANDARD_NO_PAD.encode(inner));
            forms.push(URL_SAFE_NO_PAD.encode(inner));
        }
        Self { name, forms }
    }
}

/// Looks for all of them in a place.
#[track_caller]
pub(super) fn none_in(canaries: &[Canary], place: &str, bytes: impl AsRef<[u8]>) {
    let text = String::from_utf8_lossy(bytes.as_ref());
    for canary in canaries {
        for form in &canary.forms {
            let Some((before, after)) = text.split_once(form) else {
                continue;
            };
            let before: Vec<char> = before.chars().rev().take(200).collect();
            let before: String = before.iter().rev().collect();
            let after: String = after.chars().take(50).collect();
            panic!("{} is in {place}: …{before}{form}{after}…", canary.name);
        }
    }
}

#[test]
fn a_canary_is_found_in_every_form() {
    let secret = "sk-canary/+=1?";
    let canary = [Canary::new("it", secret)];
    let texts = [
        format!("authorization: Bearer {secret}"),
        "key=sk-canary%2F%2B%3D1%3F&x".to_owned(),
        "key=sk-canary%2f%2b%3d1%3f&x".to_owned(),
        STANDARD_NO_PAD.encode(format!("user:{secret}")),
        STANDARD_NO_PAD.encode(format!("user1:{secret}")),
        URL_SAFE_NO_PAD.encode(format!("user12:{secret} and more")),
        format!("{:?}", secret.as_bytes()),
        format!("{:?}", bytes::Bytes::from(secret.to_owned())),
    ];
    for text in texts {
        let found = std::panic::catch_unwind(|| none_in(&canary, "a text", &text));
        assert!(found.is_err(), "{text}");
    }
    none_in(&canary, "a text", "sk-canary");
}
