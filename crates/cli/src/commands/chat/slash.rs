//! Commands within a chat, as they are written.
//!
//! Not here: what they do.

use std::fmt;

use crate::output::failure::Failure;
use crate::output::printable::one_line;

/// What there is.
pub(super) const HELP: &str = "\
/help            this list
/branch          list the branches
/branch NAME     switch to a branch; one of that name is made here if there is none
/rewind [N]      go back before the last thing you said, or the last N: a new branch; before the first of them it is empty
/checkpoint NAME keep this place under a name
/compact         put a manifest in the place of the older part
/explain         what the model would be sent now
/skills          the skills it is offered
/memory          the notes it keeps
/quit            leave
";

/// Where the descriptions in [`HELP`] begin.
pub(super) const HELP_INDENT: usize = 17;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlashCommand {
    Help,
    Branches,
    Branch(String),
    Rewind(usize),
    Checkpoint(String),
    Compact,
    Explain,
    Skills,
    Memory,
    Quit,
}

/// What is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlashError {
    /// There is none of this name.
    UnknownCommand(String),
    /// It is written otherwise.
    WrongUsage(&'static str),
}

impl fmt::Display for SlashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCommand(name) => write!(f, "there is no command {}", one_line(name)),
            Self::WrongUsage(how) => write!(f, "expected {how}"),
        }
    }
}

impl SlashCommand {
    pub(super) fn parse(line: &str) -> Result<Self, SlashError> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let argument = words.next();
        let alone = |command: Self, how| match argument {
            None => Ok(command),
            Some(_) => Err(SlashError::WrongUsage(how)),
        };
        // No command takes two words; text after one is likely something that was meant to be said.
        if words.next().is_some() {
            // The help names every command followed by a space, so it serves as the list of them.
            return Err(match HELP.contains(&format!("{name} ")) {
                true => SlashError::WrongUsage("one word after a command, at most"),
                false => SlashError::UnknownCommand(name.to_owned()),
            });
        }
        match (name, argument) {
            ("/help", _) => Ok(Self::Help),
            ("/branch", None) => Ok(Self::Branches),
            ("/branch", Some(name)) => Ok(Self::Branch(name.to_owned())),
            ("/rewind", None) => Ok(Self::Rewind(1)),
            ("/rewind", Some(count)) => match count.parse() {
                // Going back by nothing would make a branch for nothing.
                Ok(count) if count > 0 => Ok(Self::Rewind(count)),
                _ => Err(SlashError::WrongUsage("/rewind N, with a number from 1")),
            },
            ("/checkpoint", Some(name)) => Ok(Self::Checkpoint(name.to_owned())),
            ("/checkpoint", None) => Err(SlashError::WrongUsage("/checkpoint NAME")),
            ("/compact", _) => alone(Self::Compact, "/compact alone"),
            ("/explain", _) => alone(Self::Explain, "/explain alone"),
            ("/skills", _) => alone(Self::Skills, "/skills alone"),
            ("/memory", _) => alone(Self::Memory, "/memory alone"),
            ("/quit" | "/exit", _) => Ok(Self::Quit),
            (name, _) => Err(SlashError::UnknownCommand(name.to_owned())),
        }
    }
}

impl From<SlashError> for Failure {
    fn from(unknown: SlashError) -> Self {
        Self::usage(unknown.to_string()).with_hint("/help lists the commands")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        for (line, expected) in [
            ("/help", Ok(SlashCommand::Help)),
            ("/branch", Ok(SlashCommand::Branches)),
            ("/branch  b", Ok(SlashCommand::Branch("b".to_owned()))),
            ("/rewind", Ok(SlashCommand::Rewind(1))),
            ("/rewind 3", Ok(SlashCommand::Rewind(3))),
            ("/rewind 0", Err("expected /rewind N, with a number from 1")),
            ("/rewind x", Err("expected /rewind N, with a number from 1")),
            ("/checkpoint", Err("expected /checkpoint NAME")),
            ("/compact now", Err("expected /compact alone")),
            (
                "/branch a b",
                Err("expected one word after a command, at most"),
            ),
            ("/", Err("there is no command /")),
            ("/hel", Err("there is no command /hel")),
            ("/a b c", Err("there is no command /a")),
        ] {
            let read = SlashCommand::parse(line).map_err(|unknown| unknown.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{line}");
        }
    }
}
