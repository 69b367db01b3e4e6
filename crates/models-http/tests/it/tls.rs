//! TLS on the loopback: whom the client believes.

use std::sync::Arc;

use contexture_models::{Model, ModelError, text_response};
use contexture_models_http::{ClientError, ClientOptions, HttpModel, Provider, RootCertificate};
use contexture_wire::Format;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{chat, options, text};

/// Who certifies servers.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    fn roots(&self) -> Vec<RootCertificate> {
        RootCertificate::from_pem(self.pem.as_bytes()).unwrap()
    }

    /// A server with a certificate for a name, until a year. It answers every request with `said`.
    async fn serve(&self, name: &str, until: i32, said: &'static str) -> u16 {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // One that refuses the certificate is gone.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let body = text_response(Format::OpenAiChat, said);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
                let _ = stream.shutdown().await;
            }
        });
        port
    }
}

async fn ask(port: u16, roots: Vec<RootCertificate>) -> Result<String, ModelError> {
    let base = format!("https://localhost:{port}/v1");
    let provider = Provider::with_base_url(Format::OpenAiChat, &base, None).unwrap();
    let options = ClientOptions { roots, ..options() };
    let model = HttpModel::with_options(provider, options).unwrap();
    model.answer(chat()).await.map(|answer| text(&answer.body))
}

#[tokio::test]
async fn a_given_authority_is_believed_and_no_other() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let port = ours.serve("localhost", 2099, "Bamako.").await;
    assert_eq!(ask(port, ours.roots()).await.unwrap(), "Bamako.");
    for roots in [Vec::new(), theirs.roots()] {
        let error = ask(port, roots).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            ("model_untrusted", false)
        );
        let said = error.to_string();
        assert!(
            said.starts_with("some/model cannot be trusted: its certificate is refused: ")
                && said.contains("ClientOptions::roots"),
            "{said}"
        );
    }
    let both = [theirs.roots(), ours.roots()].concat();
    assert_eq!(ask(port, both).await.unwrap(), "Bamako.");
}

#[tokio::test]
async fn a_certificate_of_another_name_or_time_is_refused() {
    let ours = Authority::new("ours");
    for (name, until, why) in [
        ("elsewhere", 2099, "not valid for name"),
        ("localhost", 2021, "expired"),
    ] {
        let port = ours.serve(name, until, "Never.").await;
        let error = ask(port, ours.roots()).await.unwrap_err();
        assert_eq!(error.kind(), "model_untrusted");
        let said = error.to_string();
        assert!(
            said.contains(why) && !said.contains("ClientOptions::roots"),
            "{said}"
        );
    }
}

#[test]
fn a_root_that_is_none_is_named() {
    let why = |pem: &str| match RootCertificate::from_pem(pem.as_bytes()) {
        Err(ClientError::BadCertificate { why }) => why,
        other => panic!("{other:?}"),
    };
    assert!(why("").contains("no CERTIFICATE"));
    assert!(why("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n").contains("base64"));
    assert!(!why("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").is_empty());
    let two = Authority::new("one").pem + "and another\n" + &Authority::new("two").pem;
    assert_eq!(RootCertificate::from_pem(two.as_bytes()).unwrap().len(), 2);
}
