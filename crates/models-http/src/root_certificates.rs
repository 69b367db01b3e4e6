//! Trust in servers: the system's authorities, and those that are given.
//!
//! Not here: certificates of the client itself; connections without any check, which there are none of.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::error::ClientError;

/// The certificate of an authority that is trusted beside the system's, as that of a company whose proxy opens TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct RootCertificate(CertificateDer<'static>);

impl RootCertificate {
    /// All certificates of a PEM text, in their order. What stands between them is passed over.
    ///
    /// # Errors
    /// [`ClientError::BadCertificate`] if there is none, or one that is no authority's.
    pub fn from_pem(pem: &[u8]) -> Result<Vec<Self>, ClientError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let read = read.map_err(|error| ClientError::BadCertificate {
            why: error.to_string(),
        })?;
        if read.is_empty() {
            let why = "there is no CERTIFICATE in the PEM text".to_owned();
            return Err(ClientError::BadCertificate { why });
        }
        let roots: Vec<Self> = read.into_iter().map(Self).collect();
        // Tried against an empty store, so that a bad certificate fails when it is read and not at the first
        // call.
        roots
            .iter()
            .try_for_each(|root| root.add_to_store(&mut RootCertStore::empty()))?;
        Ok(roots)
    }

    fn add_to_store(&self, store: &mut RootCertStore) -> Result<(), ClientError> {
        let added = store.add(self.0.clone());
        added.map_err(|error| ClientError::BadCertificate {
            why: error.to_string(),
        })
    }
}

impl fmt::Debug for RootCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootCertificate({} bytes)", self.0.len())
    }
}

/// The system's certificates, these, and one provider of cryptography, without touching what is set for the process.
pub(crate) fn tls_config(roots: &[RootCertificate]) -> Result<rustls::ClientConfig, ClientError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
        .iter()
        .try_for_each(|root| root.add_to_store(&mut store))?;
    // Given explicitly: another library in the process may have installed a provider of its own.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Tls {
            why: error.to_string(),
        })?;
    let mut config = config.with_root_certificates(store).with_no_client_auth();
    // HTTP/2 first; without the list the connection would stay at HTTP/1.1.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// What is wrong with the certificate of the other side, if that is why a call failed.
pub(crate) fn certificate_error(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(why)) = rustls_error(error) {
            let what = match why {
                // The one case that a user can mend by configuration.
                rustls::CertificateError::UnknownIssuer => {
                    "; if a proxy stands between, trust its authority by ClientOptions::roots"
                }
                _ => "",
            };
            return Some(format!("its certificate is refused: {why}{what}"));
        }
        cause = error.source();
    }
    None
}

/// An `io::Error` shows the causes of what it wraps, and not what it wraps, which may be another one.
fn rustls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<std::io::Error>() {
        Some(wrapper) => rustls_error(wrapper.get_ref()?),
        None => error.downcast_ref(),
    }
}
