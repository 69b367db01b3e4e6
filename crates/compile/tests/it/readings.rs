//! Reading what previews leave out: answers are bounded.

use contexture_compile::reading::{
    PathMatches, ReadCall, ReadReply, SearchHit, excerpt_reply, extract_excerpt, find_lines,
    matches_reply, search_reply,
};
use contexture_compile::{Link, PreviewPolicy, Previewer};
use contexture_ir::ContentHash;
use contexture_tokens::{Encoding, counter_for};
use proptest::prelude::*;

fn link() -> Link {
    Link::new(ContentHash::of(b"an output"))
}

/// Answers a call on a conversation that consists of `texts`, the newest first; links name the first.
fn answer(arguments: &str, texts: &[&str]) -> ReadReply {
    let text = texts.first().copied().unwrap_or_default();
    match ReadCall::parse(arguments).unwrap() {
        ReadCall::Read {
            link,
            from,
            lines,
            characters,
        } => excerpt_reply(link, &extract_excerpt(text, from, lines, characters)),
        ReadCall::Find {
            link,
            matcher,
            which,
        } => matches_reply(link, &find_lines(text, &matcher, &which)),
        ReadCall::Search { query, limit } => {
            // Which texts match is for the engine to find out; here it is those that have the query.
            let matching = texts
                .iter()
                .filter_map(|text| Some((text, text.find(&query)?)));
            let mut hits: Vec<SearchHit> = matching
                .map(|(text, at)| {
                    SearchHit::new(link(), "output of ls", text, &(at..at + query.len()), limit)
                })
                .collect();
            let more = hits.len() > limit;
            hits.truncate(limit);
            search_reply(&PathMatches { hits, more })
        }
    }
}

fn ask(arguments: &str, texts: &[&str]) -> String {
    answer(&arguments.replace("URI", &link().to_string()), texts).text
}

#[test]
fn answers_read_like_this() {
    let text = "one\ntwo\nthree\n";
    let link = link();
    for (arguments, expected) in [
        (
            r#"{"uri":"URI"}"#,
            format!("[{link}: lines 1-3 of 3, 14 characters in all]\none\ntwo\nthree\n"),
        ),
        (
            r#"{"uri":"URI","offset":2,"limit":1}"#,
            format!("[{link}: lines 2-2 of 3, 14 characters in all]\ntwo\n[more: offset 3]"),
        ),
        (
            r#"{"uri":"URI","offset":9}"#,
            format!("[{link} has 3 lines: nothing there]"),
        ),
        (
            r#"{"uri":"URI","pattern":"T"}"#,
            format!("[{link}: 2 of 2 matching lines]\n2:two\n3:three"),
        ),
        (
            r#"{"uri":"URI","pattern":"^t","regex":true,"limit":1,"context":1}"#,
            format!("[{link}: 1 of 2 matching lines]\n1-one\n2:two\n[more: offset 3]"),
        ),
        (
            r#"{"query":"two"}"#,
            format!("[1 found, best first]\n{link} output of ls, line 2:\ntwo"),
        ),
        (
            r#"{"query":"four"}"#,
            "[nothing found: other words may find it]".to_owned(),
        ),
    ] {
        assert_eq!(ask(arguments, &[text]), expected, "{arguments}");
    }
}

#[test]
fn a_long_line_is_read_in_pieces_that_join() {
    let json = format!("{{\"ids\":[{}0]}}", "123456,".repeat(2_000));
    let mut read = String::new();
    let mut asked = r#"{"uri":"URI"}"#.to_owned();
    for _ in 0..10 {
        let answer = ask(&asked, &[&json]);
        let (_, rest) = answer.split_once("]\n").unwrap();
        let Some((part, more)) = rest.rsplit_once("\n[more: offset 1, column ") else {
            read.push_str(rest);
            break;
        };
        read.push_str(part);
        let column = more.trim_end_matches(']');
        asked = format!(r#"{{"uri":"URI","offset":1,"column":{column}}}"#);
    }
    assert_eq!(read, json);
}

proptest! {
    #[test]
    fn an_answer_is_never_previewed(
        piece in "\\PC{1,30}",
        feed in prop_oneof![Just("\n"), Just(""), Just("\r\n\n")],
        times in 1usize..3_000,
        offset in 1u64..100,
        context in 0u64..30,
        limit in 1u64..10_000,
    ) {
        let text = format!("{piece}{feed}").repeat(times);
        let word = serde_json::to_string(&piece).unwrap();
        let policy = PreviewPolicy::default();
        let previewer = Previewer {
            policy: &policy,
            counter: counter_for(Encoding::O200kBase),
        };
        let texts = vec![text.as_str(); 30];
        for arguments in [
            format!(r#"{{"uri":"URI","offset":{offset},"column":{context}}}"#),
            format!(r#"{{"uri":"URI","offset":{offset},"limit":{limit},"pattern":{word},"context":{context}}}"#),
            format!(r#"{{"query":{word},"limit":{limit}}}"#),
        ] {
            let answer = ask(&arguments, &texts);
            prop_assert_eq!(previewer.preview_text(&answer, link()), None, "{}: {}", arguments, answer.chars().count());
        }
    }
}
