//! Tells the linker of macOS that the symbols of Python come with the process that loads the module.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
