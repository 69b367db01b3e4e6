//! Why a model over HTTP cannot be set up.

/// An error in the configuration of a client; calls have [`contexture_models::ModelError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No environment variable has a key.
    #[error("no key: set {}", .variables.join(" or "))]
    NoKey {
        /// Names of the environment variables that were looked for.
        variables: &'static [&'static str],
    },
    /// A key with characters that no header can carry.
    #[error("the key has characters that no HTTP header can carry: copy it again")]
    BadKey,
    /// An address that cannot be called.
    #[error("bad base address: {why}")]
    BadAddress {
        /// Description of the fault, without the user and password of the address.
        why: String,
    },
    /// A header that cannot be sent.
    #[error("bad header {name:?}: {why}")]
    BadHeader {
        /// Name of the header.
        name: String,
        /// Description of the fault.
        why: &'static str,
    },
    /// A format that no provider speaks.
    #[error("{format} is no provider's format")]
    NoProvider {
        /// Format that was asked for.
        format: contexture_wire::Format,
    },
    /// A root certificate that cannot be used.
    #[error("bad root certificate: {why}")]
    BadCertificate {
        /// Description of the fault.
        why: String,
    },
    /// TLS could not be set up.
    #[error("no secure connections: {why}")]
    Tls {
        /// Description of the error, from the library that failed.
        why: String,
    },
}
