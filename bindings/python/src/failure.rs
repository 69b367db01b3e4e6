//! Errors on their way to Python: a stable code, what happened, and what programs may want to know beside it.
//!
//! The classes and hints are Python's (`contexture/_errors.py`), which reads the document that is written here.

use std::any::Any;

use contexture::ir::Error as IrError;
use contexture::store::Error as StoreError;
use contexture::{EngineError, OpenError};
use contexture_api::operations::{NotesError, OperationError};
use contexture_api::problem::error_chain;
use serde::Serialize;
use serde_json::{Map, Value};

/// An error, as Python reads it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    code: &'static str,
    detail: String,
    retryable: bool,
    members: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retryable: false,
            members: Map::new(),
        }
    }

    /// Creates the error of an argument that cannot be followed.
    pub(crate) fn argument(name: &str, detail: impl Into<String>) -> Self {
        let (member, detail) = (name.to_owned(), detail.into());
        OperationError::Member { member, detail }.into()
    }

    /// Creates the error of a panic, which is a defect of ours.
    pub(crate) fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        Self::new("internal", format!("the engine failed: {text}"))
    }

    /// Returns the document that Python reads.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        Self {
            code: error.code(),
            retryable: error.is_retryable(),
            members: error.members(),
            detail: error_chain(&error),
        }
    }
}

impl From<NotesError> for Failure {
    fn from(error: NotesError) -> Self {
        match error {
            NotesError::Engine(error) => error.into(),
            error => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        OperationError::from(error).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<IrError> for Failure {
    fn from(error: IrError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self {
            retryable: error.is_retryable(),
            ..Self::new(error.kind(), error_chain(&error))
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The place within a document that Python wrote says nothing to whoever passed an argument.
        let what = text.split(" at line ").next().unwrap_or(&text);
        Self::new("bad_body", what)
    }
}
