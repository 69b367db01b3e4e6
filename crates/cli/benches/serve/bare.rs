//! A reverse proxy that does nothing but pass on: what passing on costs at the least.

use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// Listens on a free port, says where on standard output, and passes on for ever.
pub(crate) async fn forward(upstream: SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let client = client.clone();
        let pass = service_fn(move |mut request: Request<Incoming>| {
            let path = request.uri().path_and_query().unwrap().as_str();
            *request.uri_mut() = format!("http://{upstream}{path}").parse::<Uri>().unwrap();
            request.headers_mut().remove(HOST);
            client.request(request)
        });
        let connection = hyper::server::conn::http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), pass));
    }
}
