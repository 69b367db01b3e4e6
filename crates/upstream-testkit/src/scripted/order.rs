//! What a message asks the upstream for.

/// What the lines of a message that begin with `upstream:` say.
#[derive(Debug, Default)]
pub(crate) struct ScriptDirectives {
    /// Tools to call: names and arguments, JSON.
    pub(crate) calls: Vec<(String, String)>,
    /// A tool to call in each round, until there were so many.
    again: Option<(usize, String)>,
    pub(crate) words: Option<usize>,
    pub(crate) pieces: Option<usize>,
    failure: Option<(Failure, When)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Status(u16),
    Silence,
    Drop(usize),
    Stall(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Once,
}

impl ScriptDirectives {
    pub(crate) fn from_message(message: &str) -> Self {
        let mut order = Self::default();
        for line in message.lines() {
            if let Some(words) = line.trim().strip_prefix("upstream:") {
                order.read_directive(words.trim());
            }
        }
        order
    }

    fn read_directive(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || -> usize {
            let first = rest.split(' ').next().unwrap_or_default();
            let parsed = first.parse();
            // A mistake in a test's script must fail at once and say where.
            parsed.unwrap_or_else(|_| panic!("`upstream: {line}`: a number follows `{verb}`"))
        };
        match verb {
            "call" => self.add_call(rest),
            "again" => {
                let (_, call) = rest.split_once(' ').unwrap_or((rest, ""));
                self.again = Some((number(), call.to_owned()));
            }
            "words" => self.words = Some(number()),
            "pieces" => self.pieces = Some(number()),
            "status" => self.set_failure(Failure::Status(u16::try_from(number()).unwrap()), rest),
            "silence" => self.set_failure(Failure::Silence, rest),
            "drop" => self.set_failure(Failure::Drop(number()), rest),
            "stall" => self.set_failure(Failure::Stall(number()), rest),
            _ => panic!("`upstream: {line}`: no such order"),
        }
    }

    fn add_call(&mut self, call: &str) {
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        // Not parsed here: a test may want broken arguments.
        self.calls.push((name.to_owned(), arguments.to_owned()));
    }

    /// What is asked for in the round behind so many outputs of tools.
    pub(crate) fn in_round(mut self, of_person: &str, outputs: usize) -> Self {
        if let Some((rounds, call)) = Self::from_message(of_person).again
            && outputs < rounds
        {
            self.add_call(&call);
        }
        self
    }

    fn set_failure(&mut self, failure: Failure, rest: &str) {
        let when = if rest.ends_with("once") {
            When::Once
        } else {
            When::Always
        };
        self.failure = Some((failure, when));
    }

    /// What goes wrong at this attempt, the first being 1.
    pub(crate) fn failure_of(&self, attempt: usize) -> Option<Failure> {
        let (failure, when) = self.failure?;
        (when == When::Always || attempt == 1).then_some(failure)
    }
}
