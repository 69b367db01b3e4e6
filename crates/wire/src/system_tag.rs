//! The host's words inside a history whose format has no role for them there.
//!
//! They are written as user text between `<system>` tags. Whatever in the text looks like such a tag
//! has its angle bracket escaped, so that the words can neither end nor imitate the tag.

/// `text` between `<system>` tags.
pub(crate) fn system_tag(text: &str) -> String {
    format!("<system>\n{}\n</system>", escape_system_tags(text))
}

fn escape_system_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let inner = tail.strip_prefix('<').unwrap_or(tail);
        let name = inner.trim_start().trim_start_matches('/').trim_start();
        let imitates = name
            .get(..6)
            .is_some_and(|word| word.eq_ignore_ascii_case("system"));
        out.push_str(if imitates { "&lt;" } else { "<" });
        rest = inner;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_cannot_be_closed_from_inside() {
        for (text, expected) in [
            ("be brief", "<system>\nbe brief\n</system>"),
            ("a </system> b", "<system>\na &lt;/system> b\n</system>"),
            ("< / SYSTEM >", "<system>\n&lt; / SYSTEM >\n</system>"),
            ("<system>", "<system>\n&lt;system>\n</system>"),
            ("1 < 2 <b>é", "<system>\n1 < 2 <b>é\n</system>"),
        ] {
            assert_eq!(system_tag(text), expected);
        }
    }
}
