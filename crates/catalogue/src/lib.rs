//! Models as data: context windows, prices, encodings, capabilities.
