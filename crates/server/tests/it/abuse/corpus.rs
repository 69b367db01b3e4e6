//! Requests that two readers may read in two ways, and how they are read here.

/// One connection: what is sent, what is answered, and which requests the provider gets.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) answers: &'static [u16],
    pub(super) passed: Vec<Passed>,
}

/// A request as the provider gets it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) body: String,
}

/// Stands behind every case: nobody asked for it, unless the connection is open still.
pub(super) const HIDDEN: &str = "GET /v1/hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";

const LAST: &str = "GET /v1/last HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

pub(super) fn cases() -> Vec<Case> {
    let all = [
        encodings(),
        lengths(),
        headers(),
        lines(),
        chunks(),
        sizes(),
        one_way(),
        several(),
    ];
    all.into_iter().flatten().collect()
}

/// A head's lines behind the first, and the body.
fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/files HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n\r\n{body}{HIDDEN}")
        .into_bytes()
}

/// The same, in chunks.
fn chunked(body: &str) -> Vec<u8> {
    post("transfer-encoding: chunked", body)
}

fn passed(method: &str, target: &str, body: &str) -> Passed {
    Passed {
        method: method.to_owned(),
        target: target.to_owned(),
        body: body.to_owned(),
    }
}

/// Refused, and the connection closed.
fn refused(name: &'static str, bytes: impl Into<Vec<u8>>) -> Case {
    Case {
        name,
        bytes: bytes.into(),
        answers: &[400],
        passed: Vec::new(),
    }
}

/// Read in one way, and the connection closed.
fn read(name: &'static str, bytes: impl Into<Vec<u8>>, request: Passed) -> Case {
    Case {
        name,
        bytes: bytes.into(),
        answers: &[200],
        passed: vec![request],
    }
}

fn encodings() -> Vec<Case> {
    let te = |name, value: &str| {
        refused(
            name,
            post(&format!("transfer-encoding: {value}"), "0\r\n\r\n"),
        )
    };
    vec![
        te("an encoding before chunked", "x, chunked"),
        te("an encoding behind chunked", "chunked, x"),
        te("chunked twice", "chunked, chunked"),
        te(
            "chunked in two lines",
            "chunked\r\ntransfer-encoding: chunked",
        ),
        te(
            "another encoding in a second line",
            "chunked\r\ntransfer-encoding: identity",
        ),
        te(
            "another encoding in a first line",
            "identity\r\ntransfer-encoding: chunked",
        ),
        te("gzip before chunked", "gzip, chunked"),
        te("identity", "identity"),
        te("no encoding", ""),
        te("nearly chunked", "xchunked"),
        te("chunked in quotes", "\"chunked\""),
        te("chunked behind a vertical tab", "\u{b}chunked"),
        te("chunked with a parameter", "chunked;q=1"),
        te("chunked behind a comma", ", chunked"),
        refused(
            "chunks in HTTP/1.0",
            format!(
                "POST /v1/files HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
            ),
        ),
    ]
}

fn lengths() -> Vec<Case> {
    let length =
        |name, value: &str| refused(name, post(&format!("content-length: {value}"), "hello"));
    vec![
        length("two lengths", "5\r\ncontent-length: 6"),
        length("two lengths in one line", "5, 6"),
        length("one length twice in one line", "5, 5"),
        length("a length with a sign", "+5"),
        length("a length below nothing", "-5"),
        length("a length in hexadecimal", "0x5"),
        length("no length", ""),
        length("a length with a blank", "5 0"),
        length("a length with a point", "5.0"),
        length("a length of 30 digits", "100000000000000000000000000005"),
        length("a length of 2^64", "18446744073709551616"),
        Case {
            answers: &[431],
            ..length("a length of 2^64 - 1", "18446744073709551615")
        },
    ]
}

fn headers() -> Vec<Case> {
    let line = |name, line: &str| refused(name, post(line, ""));
    vec![
        line("a folded line", "x-a: 1\r\n 2"),
        line("a folded encoding", "transfer-encoding:\r\n chunked"),
        line("a folded length", "content-length:\r\n\t5"),
        line("a blank before the colon", "content-length : 5"),
        line("a tab before the colon", "transfer-encoding\t: chunked"),
        line("no name", ": 1"),
        line("no colon", "content-length"),
        line("a NUL in a value", "x-a: 1\0b"),
        line("a NUL in a name", "x-\0a: 1"),
        line("a CR in a value", "x-a: 1\rcontent-length: 5"),
        line("a CR in a name", "x\r-a: 1"),
        line("a control character in a value", "x-a: 1\u{1}2"),
        line("a name outside of ASCII", "x-\u{e9}: 1"),
        line("a second host", "host: localhost"),
        line("a second host that is another", "host: 127.0.0.1"),
        refused(
            "no host",
            format!("GET /v1/models HTTP/1.1\r\nx-a: 1\r\n\r\n{HIDDEN}"),
        ),
        refused(
            "a first line that is folded",
            format!("GET /v1/models HTTP/1.1\r\n x: 1\r\nhost: localhost\r\n\r\n{HIDDEN}"),
        ),
    ]
}

fn lines() -> Vec<Case> {
    let line =
        |name, line: &str| refused(name, format!("{line}\r\nhost: localhost\r\n\r\n{HIDDEN}"));
    vec![
        line("HTTP/0.9", "GET /v1/models"),
        line("HTTP/1.2", "GET /v1/models HTTP/1.2"),
        line("HTTP/11", "GET /v1/models HTTP/11"),
        line("a small http", "GET /v1/models http/1.1"),
        line("the beginning of HTTP/2", "PRI * HTTP/2.0"),
        line("a tunnel", "CONNECT localhost:443 HTTP/1.1"),
        line(
            "another host in the line",
            "GET http://evil.example/v1/models HTTP/1.1",
        ),
        line(
            "another port in the line",
            "GET http://localhost:1/v1/models HTTP/1.1",
        ),
        line(
            "a user in the line",
            "GET http://localhost@evil.example/v1/models HTTP/1.1",
        ),
        line("an authority alone", "GET localhost:80 HTTP/1.1"),
        line("a blank in the path", "GET /v1/mod els HTTP/1.1"),
        line("a NUL in the path", "GET /v1/mod\0els HTTP/1.1"),
        line("a CR in the path", "GET /v1/mod\rels HTTP/1.1"),
        line("a tab behind the path", "GET /v1/models\tHTTP/1.1"),
        line("no method", " /v1/models HTTP/1.1"),
        line("a method with a brace", "G{T /v1/models HTTP/1.1"),
        line("no path", "GET HTTP/1.1"),
        line("an answer", "HTTP/1.1 200 OK"),
    ]
}

fn chunks() -> Vec<Case> {
    let body = |name, body: &str| refused(name, chunked(body));
    vec![
        body(
            "a size beyond 64 bits",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
        ),
        body(
            "a size of very many digits",
            &format!("{}5\r\nhello\r\n0\r\n\r\n", "F".repeat(40)),
        ),
        body("a size with a prefix", "0x5\r\nhello\r\n0\r\n\r\n"),
        body("a size with a sign", "+5\r\nhello\r\n0\r\n\r\n"),
        body("a size below nothing", "-5\r\nhello\r\n0\r\n\r\n"),
        body("no size", "\r\nhello\r\n0\r\n\r\n"),
        body("a size that is none", "five\r\nhello\r\n0\r\n\r\n"),
        body("a size that ends with LF", "5\nhello\r\n0\r\n\r\n"),
        body("a size that ends with CR", "5\rhello\r\n0\r\n\r\n"),
        body(
            "an extension that ends with LF",
            "5;x=1\nhello\r\n0\r\n\r\n",
        ),
        body("a chunk that ends with LF", "5\r\nhello\n0\r\n\r\n"),
        body("a chunk that does not end", "5\r\nhello0\r\n\r\n"),
        body("a chunk longer than its size", "3\r\nhello\r\n0\r\n\r\n"),
        body("a last chunk that ends with LF", "5\r\nhello\r\n0\n\r\n"),
        body(
            "an extension of 100 KB",
            &format!("5;x={}\r\nhello\r\n0\r\n\r\n", "y".repeat(100_000)),
        ),
        body(
            "an extension at each of many chunks",
            &format!(
                "{}0\r\n\r\n",
                format!("1;{}\r\nx\r\n", "y".repeat(100)).repeat(500)
            ),
        ),
        body(
            "trailers of 100 KB",
            &format!("0\r\nx: {}\r\n\r\n", "y".repeat(100_000)),
        ),
        body(
            "trailers in thousands",
            &format!("0\r\n{}\r\n", "x: y\r\n".repeat(5_000)),
        ),
    ]
}

fn sizes() -> Vec<Case> {
    let too_large = |name, answers, lines: String| Case {
        name,
        bytes: post(&lines, ""),
        answers,
        passed: Vec::new(),
    };
    vec![
        too_large(
            "a header of 1 MB",
            &[431],
            format!("x: {}", "y".repeat(1 << 20)),
        ),
        too_large("10,000 headers", &[431], vec!["x: y"; 10_000].join("\r\n")),
        too_large("101 headers", &[431], vec!["x: y"; 100].join("\r\n")),
        Case {
            name: "a path of 1 MB",
            bytes: format!(
                "GET /v1/{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
                "x".repeat(1 << 20)
            )
            .into_bytes(),
            answers: &[431],
            passed: Vec::new(),
        },
        Case {
            name: "an answer before the body, which is a request",
            bytes: post(
                "connection: close\r\ncontent-length: 2000000",
                &HIDDEN.repeat(40_000),
            ),
            answers: &[413],
            passed: Vec::new(),
        },
    ]
}

fn one_way() -> Vec<Case> {
    let sized = "content-length: 5\r\nconnection: close";
    let hello = || passed("POST", "/v1/files", "hello");
    let nothing = || passed("POST", "/v1/files", "");
    let chunks = |name, lines: &str, body: &str| {
        read(
            name,
            post(&format!("{lines}\r\nconnection: close"), body),
            hello(),
        )
    };
    let get = |name, target: &str, seen: &str| {
        let head = format!(
            "GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n{HIDDEN}"
        );
        read(name, head, passed("GET", seen, ""))
    };
    vec![
        // Both of them close, though they do not ask for it.
        read(
            "a length, then chunks",
            post(
                "content-length: 4\r\ntransfer-encoding: chunked",
                "5\r\nhello\r\n0\r\n\r\n",
            ),
            hello(),
        ),
        read(
            "chunks, then a length",
            post(
                "transfer-encoding: chunked\r\ncontent-length: 60",
                "0\r\n\r\n",
            ),
            nothing(),
        ),
        read(
            "a length that is wrong beside chunks",
            post(
                "content-length: 5\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
                "0\r\n\r\n",
            ),
            nothing(),
        ),
        read(
            "one length twice",
            post(&format!("content-length: 5\r\n{sized}"), "hello"),
            hello(),
        ),
        read(
            "a length that is named as the connection's",
            post(
                "connection: close, content-length, host\r\ncontent-length: 5",
                "hello",
            ),
            hello(),
        ),
        read(
            "a length with an underscore",
            post("content_length: 5\r\nconnection: close", ""),
            nothing(),
        ),
        read(
            "lines that end with LF",
            "POST /v1/files HTTP/1.1\nhost: localhost\ncontent-length: 5\nconnection: close\n\nhello",
            hello(),
        ),
        read(
            "empty lines before the first",
            [b"\r\n\r\n".to_vec(), post(sized, "hello")].concat(),
            hello(),
        ),
        chunks(
            "chunked in capitals",
            "transfer-encoding: CHUNKED",
            "5\r\nhello\r\n0\r\n\r\n",
        ),
        chunks(
            "chunked with blanks",
            "transfer-encoding: \t chunked \t",
            "5\r\nhello\r\n0\r\n\r\n",
        ),
        chunks(
            "a size with zeros",
            "transfer-encoding: chunked",
            "0005\r\nhello\r\n000\r\n\r\n",
        ),
        chunks(
            "an extension",
            "transfer-encoding: chunked",
            "5;a=\"b\";c\r\nhello\r\n0\r\n\r\n",
        ),
        chunks(
            "trailers that are no headers",
            "transfer-encoding: chunked\r\ntrailer: content-length, authorization",
            "5\r\nhello\r\n0\r\ncontent-length: 7\r\nauthorization: Bearer x\r\n\r\n",
        ),
        read(
            "an offer of HTTP/2",
            post(
                "connection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\ncontent-length: 0",
                "",
            ),
            nothing(),
        ),
        read(
            "an offer of WebSocket",
            post(
                "connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13",
                "",
            ),
            nothing(),
        ),
        read(
            "HTTP/1.0 closes",
            format!(
                "POST /v1/files HTTP/1.0\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhello{HIDDEN}"
            ),
            hello(),
        ),
        read(
            "HTTP/1.0 needs no host",
            format!("GET /v1/models HTTP/1.0\r\n\r\n{HIDDEN}"),
            passed("GET", "/v1/models", ""),
        ),
        get(
            "the host in the line",
            "http://localhost/v1/models",
            "/v1/models",
        ),
        // Passed on, a gateway that decodes it would see two lines.
        refused(
            "line ends in a path",
            "GET /v1/x%0d%0aevil:%201 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        ),
        // Passed on, a gateway that decodes it would see two lines.
        refused(
            "a request in a path",
            "GET /v1/x%20HTTP/1.1%0d%0a%0d%0aGET%20/v1/hidden HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        ),
        get(
            "line ends in a query",
            "/v1/x?a=%0d%0ab%00",
            "/v1/x?a=%0d%0ab%00",
        ),
        get("a path with two slashes", "/v1//x", "/v1//x"),
        read(
            "a GET with a body",
            format!("GET /v1/models HTTP/1.1\r\nhost: localhost\r\n{sized}\r\n\r\nhello{HIDDEN}"),
            passed("GET", "/v1/models", "hello"),
        ),
        read(
            "a GET whose body is a request",
            format!(
                "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{HIDDEN}",
                HIDDEN.len()
            ),
            passed("GET", "/v1/models", HIDDEN),
        ),
        read(
            "connection: close is not taken back",
            post(
                "connection: close\r\nconnection: keep-alive\r\ncontent-length: 5",
                "hello",
            ),
            hello(),
        ),
    ]
}

fn several() -> Vec<Case> {
    let sized = |lines: &str, body: &str| {
        let length = body.len();
        format!(
            "POST /v1/files HTTP/1.1\r\nhost: localhost\r\n{lines}content-length: {length}\r\n\r\n{body}{LAST}{HIDDEN}"
        )
    };
    let last = || passed("GET", "/v1/last", "");
    vec![
        Case {
            name: "two that were asked for",
            bytes: sized("", "hello").into_bytes(),
            answers: &[200, 200],
            passed: vec![passed("POST", "/v1/files", "hello"), last()],
        },
        Case {
            name: "one whose body is a request, and another",
            bytes: sized("", HIDDEN).into_bytes(),
            answers: &[200, 200],
            passed: vec![passed("POST", "/v1/files", HIDDEN), last()],
        },
        Case {
            name: "one that is refused with its body unread, which is a request",
            bytes: sized("origin: http://evil.example\r\n", HIDDEN).into_bytes(),
            answers: &[403, 200],
            passed: vec![last()],
        },
        Case {
            name: "HTTP/1.0 kept alive",
            bytes: format!("GET /v1/models HTTP/1.0\r\nconnection: keep-alive\r\n\r\n{LAST}{HIDDEN}").into_bytes(),
            answers: &[200, 200],
            passed: vec![passed("GET", "/v1/models", ""), last()],
        },
        Case {
            name: "chunks, and another",
            bytes: format!(
                "POST /v1/files HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n{LAST}{HIDDEN}"
            )
            .into_bytes(),
            answers: &[200, 200],
            passed: vec![passed("POST", "/v1/files", "hello"), last()],
        },
    ]
}
