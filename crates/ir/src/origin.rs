//! Where a node came from and who may see it. Both are fields of a node, never markers in its text.

use std::fmt;

/// Who produced a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A person.
    User,
    /// A model.
    Model,
    /// A tool.
    Tool,
    /// A layer.
    Layer,
    /// The host program.
    System,
    /// An import.
    Import,
}

impl Origin {
    /// All origins, in the order of their stored codes.
    pub const ALL: [Self; 6] = [
        Self::User,
        Self::Model,
        Self::Tool,
        Self::Layer,
        Self::System,
        Self::Import,
    ];

    /// The stored code.
    #[must_use]
    // The discriminant is stored, so the order of the variants is part of the file format; new ones go last.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Layer => "layer",
            Self::System => "system",
            Self::Import => "import",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who may see a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Audience {
    /// Compiled into payloads.
    pub model: bool,
    /// Shown to people.
    pub user: bool,
}

impl Audience {
    /// Everyone.
    pub const ALL: Self = Self {
        model: true,
        user: true,
    };
    /// Only models.
    pub const MODEL: Self = Self {
        model: true,
        user: false,
    };
    /// Only people.
    pub const USER: Self = Self {
        model: false,
        user: true,
    };
    /// Nobody: bookkeeping of the engine.
    pub const NONE: Self = Self {
        model: false,
        user: false,
    };

    /// The stored code: bit 0 model, bit 1 user.
    #[must_use]
    pub const fn code(self) -> u8 {
        // Two bits in one column, so that a backend can filter with a mask.
        self.model as u8 | ((self.user as u8) << 1)
    }

    /// Reads a stored code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code > 3 {
            return None;
        }
        Some(Self {
            model: code & 1 != 0,
            user: code & 2 != 0,
        })
    }
}

impl Default for Audience {
    fn default() -> Self {
        Self::ALL
    }
}
