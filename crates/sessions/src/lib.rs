//! Session logs of agents, read into items and written back.
