//! The protocol on a pair of streams: one client, for as long as it keeps its end open.

use contexture::Engine;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::caller::Caller;
use crate::server::{Callers, McpServer};
use crate::workers::Workers;

/// Why serving ended otherwise than by the client's leaving.
#[derive(Debug, thiserror::Error)]
#[error("the client of the Model Context Protocol was lost")]
pub struct ServeError {
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Serves a caller on standard input and output until the input ends. Nothing else may be written to standard output
/// meanwhile.
///
/// # Errors
/// As [`serve`].
pub async fn serve_stdio(engine: Engine, caller: Caller) -> Result<(), ServeError> {
    let (input, output) = stdio();
    serve(engine, caller, input, output).await
}

/// Serves a caller on a pair of streams until the input ends. A line of input may have 16 MiB; longer ones are answered
/// with an error.
///
/// # Errors
/// [`ServeError`] if the client does not keep to the protocol at its beginning, or the streams break.
pub async fn serve(
    engine: Engine,
    caller: Caller,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let server = McpServer::new(engine, Callers::Fixed(caller), Workers::default());
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        // Whoever opens and closes the streams without a word has lost nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(connection_error(error)),
    };
    // Ends when the client closes its end; why it closed makes no difference.
    running.waiting().await.map_err(connection_error)?;
    Ok(())
}

fn connection_error(source: impl std::error::Error + Send + Sync + 'static) -> ServeError {
    ServeError {
        source: Box::new(source),
    }
}
