//! Provider and UI message formats to items and back.
