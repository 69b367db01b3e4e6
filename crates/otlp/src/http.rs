//! The HTTP client of the exporters: blocking, because they have threads of their own.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use reqwest::blocking::Client;
use reqwest::redirect::Policy;

use crate::options::OtlpError;

/// The longest a request takes.
const LIMIT: Duration = Duration::from_secs(10);

/// A client that trusts the system's authorities, or those of `SSL_CERT_FILE`. Redirects are not followed.
pub(crate) fn build_http_client() -> Result<Client, OtlpError> {
    let bad = |reason: String| OtlpError::BadConfiguration { reason };
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    // Given explicitly: the process may have another cryptography provider installed, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let build = || {
        Client::builder()
            .tls_backend_preconfigured(tls)
            // A redirect could carry the user's headers, and so a key, to another host.
            .redirect(Policy::none())
            .timeout(LIMIT)
            .build()
    };
    // It has a runtime inside, which must not begin within another one.
    let built = thread::scope(|scope| scope.spawn(build).join());
    match built {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(bad(error.to_string())),
        Err(_) => Err(bad("the HTTP client could not be begun".to_owned())),
    }
}
