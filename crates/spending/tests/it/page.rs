//! The page: whole in itself, and nothing of a log is markup.

use contexture_catalogue::Catalogue;
use contexture_spending::{Spending, SpendingCollector, SpendingOptions, render_page};
use serde_json::json;

use crate::logs::{Answer, claude_log, examples, read};

fn spending() -> Spending {
    let mut collector = SpendingCollector::new(Catalogue::builtin(), SpendingOptions::default());
    for (name, format, text) in examples() {
        collector.add_log(&name, &read(format, &text));
    }
    collector.finish()
}

#[test]
fn the_page_loads_nothing() {
    let page = render_page(&spending());
    for word in [
        "<script", "<link", "<img", "<iframe", "<a ", "src=", "href=", "url(", "@import", "http:",
        "https:",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    assert!(page.contains("name=\"viewport\"") && page.contains("prefers-color-scheme: dark"));
}

#[test]
fn the_page_has_the_figures_of_the_data() {
    let spending = spending();
    let page = render_page(&spending);
    let thousands = contexture_report::number_format::group_thousands;
    for figure in [
        spending.total.input_tokens,
        spending.total.output_tokens,
        spending.breaks.total.tokens,
    ] {
        assert!(page.contains(&thousands(figure)), "{figure}");
    }
    for row in &spending.breaks.dearest {
        assert!(page.contains(&format!("{}:{}", row.file, row.line)));
    }
}

#[test]
fn words_of_logs_are_no_markup() {
    let bad = "</td><script>alert(1)</script>";
    let answers = [
        Answer {
            model: bad.to_owned(),
            before: json!({"message": {"role": "user", "content": format!("say {bad}")}}),
            ..Answer::new("m1", 18_000, 2_000)
        },
        Answer {
            model: bad.to_owned(),
            ..Answer::new("m2", 0, 20_000)
        },
    ];
    let options = SpendingOptions {
        project: Some("p".to_owned()),
        ..SpendingOptions::default()
    };
    let mut collector = SpendingCollector::new(Catalogue::builtin(), options);
    let folder = format!("/p/{bad}");
    collector.add_log(&format!("{bad}.jsonl"), &claude_log(bad, &folder, &answers));
    collector.add_unreadable(bad, bad);
    let page = render_page(&collector.finish());
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains("<script"));
}

/// Every member of the document by its name: fields are added and never renamed.
#[test]
fn the_document_keeps_its_shape() {
    let document = serde_json::to_value(spending()).unwrap();
    let names = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(
        names(&document),
        [
            "time_zone",
            "filters",
            "files",
            "first",
            "last",
            "sessions",
            "total",
            "side",
            "copied_calls",
            "unfinished_calls",
            "days",
            "models",
            "projects",
            "dearest_sessions",
            "breaks",
            "estimates"
        ]
    );
    let tally = [
        "calls",
        "input_tokens",
        "cache_read_tokens",
        "cache_written_tokens",
        "output_tokens",
        "dollars",
        "unpriced_calls",
    ];
    assert_eq!(names(&document["total"]), tally);
    assert_eq!(names(&document["days"][0])[1..], tally);
    assert_eq!(
        names(&document["breaks"]["dearest"][0]),
        [
            "at",
            "reason",
            "tokens",
            "dollars",
            "pause_seconds",
            "model",
            "file",
            "line",
            "session"
        ]
    );
    assert!(document["total"]["dollars"].is_string());
}
