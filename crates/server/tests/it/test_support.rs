//! A server on a port of its own, and a client of it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use contexture::Engine;
use contexture_server::{App, Config, Server};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs until it is dropped or stopped.
pub(crate) struct Stand {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    client: reqwest::Client,
    key: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

/// A provider that keeps every byte it gets, and answers each request with `{}`.
pub(crate) struct RawLog {
    address: SocketAddr,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl RawLog {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let log = bytes.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let log = log.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    let mut pending = Vec::new();
                    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                        log.lock().unwrap().extend_from_slice(&buffer[..count]);
                        pending.extend_from_slice(&buffer[..count]);
                        // Only requests without a body are answered.
                        if pending.ends_with(b"\r\n\r\n") {
                            pending.clear();
                            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                            stream.write_all(answer).await.unwrap();
                        }
                    }
                });
            }
        });
        Self { address, bytes }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that came so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

/// An answer, read whole.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Stand {
    /// On an engine that forgets, as it is configured by default.
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// The same with a configuration; it says nothing of where to listen.
    pub(crate) async fn with(config: &str) -> Self {
        Self::over(Engine::in_memory(), config).await
    }

    pub(crate) async fn over(engine: Engine, config: &str) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), engine, config).await
    }

    /// The same at an address: that of a server that has stopped, say.
    pub(crate) async fn at(address: SocketAddr, engine: Engine, config: &str) -> Self {
        let mut config = Config::parse(config, "test.toml").unwrap();
        config.server.listen = address;
        let server = Server::bind(App::new(engine.clone(), config).unwrap())
            .await
            .unwrap();
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run_until(async {
            // A stand that is dropped stops as well.
            let _ = stopped.await;
        }));
        // The client's TLS, which nobody uses here, wants a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            address,
            engine,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            key: None,
            stop: Some(stop),
            running,
        }
    }

    /// Where a path is.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on with this key.
    pub(crate) fn as_bearer(&mut self, key: Option<&str>) {
        self.key = key.map(str::to_owned);
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self
            .client
            .request(method, format!("http://{}{path}", self.address));
        match &self.key {
            Some(key) => request.header("x-contexture-key", key),
            None => request,
        }
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Asks with parameters, which are encoded here.
    pub(crate) async fn find(&self, path: &str, query: &[(&str, &str)]) -> Answer {
        let url = reqwest::Url::parse_with_params("http://localhost/", query).unwrap();
        self.get(&format!("{path}?{}", url.query().unwrap_or_default()))
            .await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self
            .request(method, path)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, body).await
    }

    /// Tells it to stop.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).unwrap();
        }
    }

    /// Waits until it has.
    pub(crate) async fn stopped(self) {
        drop(self.stop);
        self.running.await.unwrap();
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The document, if all went well.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text);
        if self.text.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The code of a problem, with its status.
    #[track_caller]
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(
            self.headers["content-type"], "application/problem+json",
            "{}",
            self.text
        );
        let document = self.json();
        assert_eq!(document["status"], self.status.as_u16());
        let code = document["code"].as_str().unwrap().to_owned();
        assert_eq!(document["type"], format!("urn:contexture:problem:{code}"));
        (self.status.as_u16(), code)
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.problem(), (status, code.to_owned()), "{}", self.text);
    }
}
