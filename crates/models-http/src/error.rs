//! Why a model over HTTP cannot be set up.

/// What is wrong with the configuration; calls have [`contexture_models::ModelError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No environment variable has a key.
    #[error("no key: set {}", .variables.join(" or "))]
    NoKey {
        /// The variables that were looked for.
        variables: &'static [&'static str],
    },
    /// A key with characters that no header can carry.
    #[error("the key has characters that no HTTP header can carry: copy it again")]
    BadKey,
    /// An address that cannot be called.
    #[error("bad base address: {why}")]
    BadAddress {
        /// What is wrong with it, without its user and password.
        why: String,
    },
    /// A header that cannot be sent.
    #[error("bad header {name:?}: {why}")]
    BadHeader {
        /// The header's name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A format that no provider speaks.
    #[error("{format} is no provider's format")]
    NoProvider {
        /// The format.
        format: contexture_wire::Format,
    },
    /// A certificate that nothing can be held against.
    #[error("bad root certificate: {why}")]
    BadCertificate {
        /// What is wrong with it.
        why: String,
    },
    /// TLS could not be set up.
    #[error("no secure connections: {why}")]
    Tls {
        /// What happened.
        why: String,
    },
}
