//! What Python imports as `contexture._native`.

use pyo3::prelude::*;

use crate::engine::NativeEngine;
use crate::fork::{after_fork_in_child, after_fork_in_parent, before_fork};
use crate::task::{Task, end_delivery};

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    for function in [
        wrap_pyfunction!(before_fork, module)?,
        wrap_pyfunction!(after_fork_in_parent, module)?,
        wrap_pyfunction!(after_fork_in_child, module)?,
        wrap_pyfunction!(end_delivery, module)?,
    ] {
        module.add_function(function)?;
    }
    module.add_class::<NativeEngine>()?;
    module.add_class::<Task>()
}
