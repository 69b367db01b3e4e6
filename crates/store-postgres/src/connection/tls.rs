//! Encrypts connections to the server with TLS.
//!
//! `sslmode` has the meaning of PostgreSQL's own clients. `prefer` encrypts if the server can,
//! `require` always; neither checks the certificate, unless `require` comes with `sslrootcert`.
//! `verify-ca` checks the issuer, `verify-full` also the server's name. Client certificates are not
//! supported.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use contexture_store::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Whether connections may be encrypted.
#[derive(Clone)]
pub(crate) enum Tls {
    Off(NoTls),
    On(MakeRustlsConnect),
}

/// Check of a server's certificate. The trusted issuers are in a file, or [`SYSTEM`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CertificateCheck {
    Nothing,
    Issuer(String),
    Name(String),
}

/// Stands for the issuers that the operating system trusts.
pub(crate) const SYSTEM: &str = "system";

/// Creates the connector for encrypted connections.
pub(crate) fn make_connector(check: &CertificateCheck) -> Result<MakeRustlsConnect, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match check {
        CertificateCheck::Nothing => Arc::new(AcceptAnyCertificate(Arc::clone(&provider))),
        CertificateCheck::Issuer(roots) => {
            Arc::new(AcceptAnyName(build_verifier(roots, &provider)?))
        }
        CertificateCheck::Name(roots) => build_verifier(roots, &provider)?,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::invalid_argument("sslmode", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn build_verifier(
    roots: &str,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let invalid = |why: String| Error::invalid_argument("sslrootcert", why);
    let mut store = RootCertStore::empty();
    if roots == SYSTEM {
        // Unreadable system certificates are skipped; an empty store is refused below.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        let unreadable = |error| invalid(format!("{roots}: {error}"));
        let file = Path::new(roots);
        for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
            let certificate = certificate.map_err(unreadable)?;
            let added = store.add(certificate);
            added.map_err(|error| invalid(format!("{roots}: {error}")))?;
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|error| invalid(format!("{roots}: {error}")))
}

/// Accepts any certificate; the server must still prove that it holds its key.
struct AcceptAnyCertificate(Arc<CryptoProvider>);

/// Checks the issuer of a certificate, but not the name.
#[derive(Debug)]
struct AcceptAnyName(Arc<WebPkiServerVerifier>);

impl fmt::Debug for AcceptAnyCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anyone")
    }
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for AcceptAnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self
            .0
            .verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // The name is checked last, after the issuer, so this error means that only the name is
            // wrong.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
