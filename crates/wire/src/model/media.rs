//! Inline media: `data:` URLs cut apart and put together, never decoded.

/// A base64 `data:` URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUrl<'a> {
    /// `image/png`; empty if the URL states none.
    pub media_type: &'a str,
    /// The base64 text.
    pub base64: &'a str,
}

impl<'a> DataUrl<'a> {
    /// Cuts a URL apart; `None` if it is not a base64 data URL. Parameters of the media type other
    /// than `base64` stay part of it.
    #[must_use]
    pub fn parse(url: &'a str) -> Option<Self> {
        let (head, base64) = url.strip_prefix("data:")?.split_once(',')?;
        let media_type = head.strip_suffix(";base64")?;
        Some(Self { media_type, base64 })
    }

    /// Puts a URL together.
    #[must_use]
    pub fn build(media_type: &str, base64: &str) -> String {
        format!("data:{media_type};base64,{base64}")
    }
}

/// A name for a file that has none, where a provider demands one.
pub(crate) fn default_filename(media_type: &str) -> String {
    let extension = match media_type.split(';').next().unwrap_or_default().trim() {
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        "text/markdown" => "md",
        "text/html" => "html",
        "text/csv" => "csv",
        _ => return "file".to_owned(),
    };
    format!("file.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_cut_and_join() {
        let url = "data:image/png;base64,AAAA";
        let parts = DataUrl::parse(url).unwrap();
        assert_eq!((parts.media_type, parts.base64), ("image/png", "AAAA"));
        assert_eq!(DataUrl::build(parts.media_type, parts.base64), url);
        for other in [
            "https://example.org/a.png",
            "data:text/plain,hello",
            "data:",
            "",
        ] {
            assert_eq!(DataUrl::parse(other), None, "{other}");
        }
    }
}
