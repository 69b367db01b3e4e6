//! Lines as they are typed or piped in, and Ctrl-C between them.

use std::io::{self, BufRead as _};

use tokio::signal::ctrl_c;
use tokio::sync::mpsc::{Receiver, channel};

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Lines that wait while an answer comes.
const QUEUED_LINES: usize = 64;

/// What came.
#[derive(Debug)]
pub(crate) enum InputEvent {
    Line(String),
    /// The input ended, or Ctrl-C was pressed twice.
    End,
}

/// Standard input, line by line.
#[derive(Debug)]
pub(crate) struct LineReader {
    lines: Receiver<io::Result<String>>,
    /// Whether a person types.
    person: bool,
}

impl LineReader {
    /// Begins to read. Reading a line blocks, so a thread does it.
    pub(crate) fn new(person: bool) -> Self {
        let (send, lines) = channel(QUEUED_LINES);
        // Reading standard input cannot be cancelled, so it has a thread of its own, which ends
        // with the process.
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let ends = line.is_err();
                // Nobody listens any more, or nothing more can be read.
                if send.blocking_send(line).is_err() || ends {
                    return;
                }
            }
        });
        Self { lines, person }
    }

    /// The next line.
    ///
    /// # Errors
    /// It cannot be read, or is not text.
    pub(crate) async fn next_line(&mut self) -> Outcome<InputEvent> {
        let mut pressed = false;
        loop {
            if self.person {
                write::print_stderr("› ");
            }
            tokio::select! {
                // Lines that are there already go before Ctrl-C.
                biased;
                line = self.lines.recv() => return match line {
                    Some(Ok(line)) => Ok(InputEvent::Line(line)),
                    Some(Err(error)) => Err(unreadable_stdin(&error)),
                    None => {
                        self.end_prompt_line();
                        Ok(InputEvent::End)
                    }
                },
                Ok(()) = ctrl_c() => {
                    self.end_prompt_line();
                    // Who pipes input in does not press twice.
                    if pressed || !self.person {
                        return Ok(InputEvent::End);
                    }
                    pressed = true;
                    write::print_stderr("once more, or /quit, to leave\n");
                }
            }
        }
    }

    /// The answer to a question; nothing at the end of the input.
    pub(crate) async fn ask_question(&mut self, question: &str) -> Option<String> {
        write::print_stderr(question);
        // The future may be dropped while it waits (Ctrl-C); the guard then ends the line of the
        // question.
        let mut open = OpenLine(true);
        let line = self.lines.recv().await.and_then(Result::ok);
        // Whoever types ends the line too.
        open.0 = line.is_none() || !self.person;
        line
    }

    /// Ends the line with the prompt.
    fn end_prompt_line(&self) {
        if self.person {
            write::print_stderr("\n");
        }
    }
}

/// Ends a line that was left open, also where nobody waits for its end any more.
struct OpenLine(bool);

impl Drop for OpenLine {
    fn drop(&mut self) {
        if self.0 {
            write::print_stderr("\n");
        }
    }
}

fn unreadable_stdin(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::bad_input("not_text", "a line of standard input is not UTF-8")
        }
        _ => Failure::new(
            Exit::Stream,
            "read",
            format!("cannot read standard input: {error}"),
        ),
    }
}
