//! Finds the files that a shell command reads and writes, as far as its words show.
//!
//! This is not a shell: variables, substitutions and globs stay as written. Each path that a command names is returned,
//! with whether the command changes it.

use contexture_text::fact_words::is_path;

/// How a command accesses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileAccess {
    Reads,
    Writes,
    Removes,
}

/// Programs that change the files they are given.
const WRITERS: &[&str] = &[
    "chmod", "chown", "cp", "install", "ln", "mkdir", "mv", "patch", "rsync", "tee", "touch",
    "truncate",
];
const REMOVERS: &[&str] = &["rm", "rmdir", "shred", "unlink"];
/// Programs whose arguments are not files.
const PROGRAMS_WITHOUT_FILES: &[&str] = &[
    "echo", "export", "kill", "printf", "read", "sleep", "true", "exit",
];
/// Programs whose first argument is a script or a pattern.
const PROGRAMS_WITH_SCRIPT: &[&str] = &[
    "awk", "egrep", "fgrep", "gawk", "grep", "jq", "perl", "rg", "sed",
];
/// Programs whose arguments are files even without an extension.
const READERS: &[&str] = &[
    "cat", "cd", "diff", "file", "head", "less", "ls", "more", "nl", "open", "source", "stat",
    "strings", "tail", "tree", "wc",
];
/// Programs that run another program.
const PREFIXES: &[&str] = &[
    "builtin", "command", "env", "nice", "nohup", "sudo", "time", "timeout", "xargs",
];

/// Programs that change nothing, whatever their arguments, unless their output goes to a file.
const PROGRAMS_THAT_READ: &[&str] = &[
    "basename", "cut", "date", "df", "dirname", "du", "echo", "env", "export", "hostname", "id",
    "printenv", "printf", "ps", "pwd", "sleep", "sort", "test", "tr", "true", "type", "uname",
    "uniq", "which", "whoami", "[",
];
/// What `git` does without changing anything.
const GIT_THAT_READS: &[&str] = &[
    "blame",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];
/// Options by which programs that read change something after all: `sed -i`, `find … -delete`, `perl -e`.
const CHANGING_OPTIONS: &[&str] = &[
    "-delete",
    "-exec",
    "-execdir",
    "-i",
    "-ok",
    "-o",
    "--in-place",
    "--output",
    "--write",
];

/// Whether a command changes nothing, as far as its words show.
pub(crate) fn is_read_only(command: &str) -> bool {
    split_commands(command)
        .iter()
        .all(|words| reads_only(words))
}

fn reads_only(words: &[ShellWord]) -> bool {
    let Some((program, rest)) = program_of(words) else {
        // Assignments alone are of the shell.
        return true;
    };
    let texts = || rest.iter().map(|word| word.text.as_str());
    // `2>&1` and `/dev/null` are no files.
    let mut redirections = texts().zip(texts().skip(1));
    let writes = redirections.any(|(mark, target)| {
        matches!(mark, ">" | ">>") && !target.starts_with('&') && target != "/dev/null"
    });
    let is_option = |word: &str| CHANGING_OPTIONS.contains(&word) || word.starts_with("-i.");
    let reads = match program {
        "git" => texts()
            .next()
            .is_some_and(|verb| GIT_THAT_READS.contains(&verb)),
        "perl" | "awk" | "gawk" => false,
        "find" => true,
        name => {
            READERS.contains(&name)
                || PROGRAMS_THAT_READ.contains(&name)
                || PROGRAMS_WITH_SCRIPT.contains(&name)
        }
    };
    reads && !writes && !texts().any(is_option)
}

/// The program of a simple command and its words, without prefixes: `sudo env A=1 rm x` runs `rm`.
fn program_of(words: &[ShellWord]) -> Option<(&str, &[ShellWord])> {
    let skipped = |word: &ShellWord| {
        PREFIXES.contains(&word.text.as_str()) || !word.quoted && word.text.contains('=')
    };
    let start = words.iter().position(|word| !skipped(word))?;
    let (program, rest) = words.get(start..)?.split_first()?;
    Some((program.text.rsplit('/').next().unwrap_or_default(), rest))
}

/// Returns the files that a command touches, in the order in which it names them.
pub(crate) fn touched_files(command: &str) -> Vec<(FileAccess, String)> {
    let mut found = Vec::new();
    for words in split_commands(command) {
        scan_simple_command(&words, &mut found);
    }
    found
}

fn scan_simple_command(words: &[ShellWord], found: &mut Vec<(FileAccess, String)>) {
    let Some((program, words)) = program_of(words) else {
        return;
    };
    let mut words: Vec<&ShellWord> = words.iter().collect();
    if PROGRAMS_WITH_SCRIPT.contains(&program) {
        // The first argument is code, not a file, though it may look like a path.
        let script = words.iter().position(|word| !word.text.starts_with('-'));
        script.map(|at| words.remove(at));
    }
    let in_place = matches!(program, "sed" | "perl" | "black" | "prettier" | "rustfmt")
        && words.iter().any(|word| {
            word.text.starts_with("-i")
                || word.text.starts_with("--in-place")
                || word.text == "--write"
        });
    let git = words
        .first()
        .map(|word| word.text.as_str())
        .filter(|_| program == "git");
    let touch = match program {
        _ if in_place => FileAccess::Writes,
        name if WRITERS.contains(&name) => FileAccess::Writes,
        name if REMOVERS.contains(&name) => FileAccess::Removes,
        _ if matches!(git, Some("rm")) => FileAccess::Removes,
        _ if matches!(git, Some("add" | "checkout" | "mv" | "restore" | "apply")) => {
            FileAccess::Writes
        }
        _ => FileAccess::Reads,
    };
    // Their arguments are messages; that of `git commit -m` often names files.
    let silent =
        PROGRAMS_WITHOUT_FILES.contains(&program) || git.is_some_and(|verb| verb == "commit");
    let whole = READERS.contains(&program) || touch != FileAccess::Reads;
    // The target of a copy or a move; options may follow it.
    let last = words.iter().rposition(|word| !word.text.starts_with('-'));
    let mut redirect = None;
    for (at, word) in words.iter().enumerate() {
        match (redirect.take(), word.text.as_str()) {
            // The word after a redirection is a file, whatever the program.
            (_, ">" | ">>") => redirect = Some(FileAccess::Writes),
            (_, "<") => redirect = Some(FileAccess::Reads),
            (Some(touch), path) if !path.starts_with(['&', '/']) || is_path(path) => {
                push_file(found, touch, path);
            }
            (Some(_), _) => {}
            (None, option) if option.starts_with('-') => {}
            (None, path) => {
                let named = is_path(path) && (whole || !path.contains(char::is_whitespace))
                    || whole && git.is_none() && is_file_name(path);
                let touch = match program {
                    // The last argument is written, the others are read.
                    "cp" | "ln" | "rsync" | "install" if Some(at) != last => FileAccess::Reads,
                    "mv" if Some(at) != last => FileAccess::Removes,
                    _ => touch,
                };
                if named && !silent {
                    push_file(found, touch, path);
                }
            }
        }
    }
}

fn push_file(found: &mut Vec<(FileAccess, String)>, touch: FileAccess, path: &str) {
    // `/dev/null` is not a file of interest.
    if path != "/dev/null" && !path.is_empty() {
        found.push((touch, path.to_owned()));
    }
}

/// Whether an argument of a program that takes files can be a file name.
fn is_file_name(word: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "/._-+@~".contains(c);
    word.chars().all(allowed) && word.chars().any(char::is_alphabetic)
}

#[derive(Debug, Default, PartialEq)]
struct ShellWord {
    text: String,
    quoted: bool,
}

/// Splits a command line into simple commands and their words. Text of here-documents is left out; redirections are
/// words of their own.
fn split_commands(line: &str) -> Vec<Vec<ShellWord>> {
    let mut cut = CommandSplitter::default();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match (cut.quote, c) {
            (Some(quote), c) if c == quote => cut.quote = None,
            (Some('"') | None, '\\') => {
                let next = rest.chars().next();
                rest = rest
                    .get(next.map_or(0, char::len_utf8)..)
                    .unwrap_or_default();
                cut.word.text.extend(next.filter(|next| *next != '\n'));
            }
            (Some(_), c) => cut.word.text.push(c),
            (None, '\'' | '"') => {
                cut.quote = Some(c);
                cut.word.quoted = true;
            }
            (None, '<') if rest.starts_with('<') => {
                cut.end_word();
                let (tag, behind) = heredoc_tag(rest);
                cut.heredoc_tags.extend(tag);
                rest = behind;
            }
            (None, '>' | '<') => rest = cut.push_redirect(c, rest),
            (None, '\n') => {
                cut.end_command();
                for tag in std::mem::take(&mut cut.heredoc_tags) {
                    rest = skip_heredoc(rest, &tag);
                }
            }
            (None, ';' | '|' | '&' | '(' | ')' | '`') => cut.end_command(),
            (None, c) if c.is_whitespace() => cut.end_word(),
            (None, c) => cut.word.text.push(c),
        }
    }
    cut.end_command();
    cut.done
}

/// Returns the delimiter of a here-document, and the rest of its line; `rest` starts with the second `<`.
fn heredoc_tag(rest: &str) -> (Option<String>, &str) {
    // `<<<` is followed by a word, not by lines.
    let lines = !rest.starts_with("<<");
    let text = rest
        .trim_start_matches(['<', '-'])
        .trim_start_matches([' ', '\t']);
    let end = text
        .find(|c: char| c.is_whitespace() || ";|&>".contains(c))
        .unwrap_or(text.len());
    let (tag, behind) = text.split_at(end);
    let tag = tag.replace(['\'', '"', '\\'], "");
    ((lines && !tag.is_empty()).then_some(tag), behind)
}

/// Returns what follows the here-document's last line; nothing if the document has no end.
fn skip_heredoc<'a>(text: &'a str, tag: &str) -> &'a str {
    let mut rest = text;
    while !rest.is_empty() {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = behind;
        if line.trim() == tag {
            break;
        }
    }
    rest
}

#[derive(Default)]
struct CommandSplitter {
    done: Vec<Vec<ShellWord>>,
    words: Vec<ShellWord>,
    word: ShellWord,
    quote: Option<char>,
    /// Delimiters of the here-documents that start after this line.
    heredoc_tags: Vec<String>,
}

impl CommandSplitter {
    /// Adds `>` or `<` as a word of its own; a redirection to a descriptor adds no word.
    fn push_redirect<'a>(&mut self, c: char, rest: &'a str) -> &'a str {
        // The 2 of `2>` belongs to the redirection.
        if self.word.text.chars().all(|c| c.is_ascii_digit()) {
            self.word.text.clear();
        }
        self.end_word();
        if let Some(descriptor) = rest.strip_prefix('&') {
            return descriptor.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        }
        self.word.text.push(c);
        self.end_word();
        rest.strip_prefix('>').unwrap_or(rest)
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.quoted || !word.text.is_empty() {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.done.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &[(FileAccess, &str)]) {
        let found = touched_files(command);
        let found: Vec<(FileAccess, &str)> = found
            .iter()
            .map(|(touch, path)| (*touch, path.as_str()))
            .collect();
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn files_are_read_written_and_removed() {
        use FileAccess::{Reads, Removes, Writes};
        check("cat setup.py | head -20", &[(Reads, "setup.py")]);
        check(
            "cd src && ls -la tests/",
            &[(Reads, "src"), (Reads, "tests/")],
        );
        check(
            "sed -n 1,20p a.rs; sed -i 's/a/b/' 'b c.rs'; grep -n x.y z.py",
            &[(Reads, "a.rs"), (Writes, "b c.rs"), (Reads, "z.py")],
        );
        check("sed -i s/a/b/ b.rs", &[(Writes, "b.rs")]);
        check(
            "rm -rf build; mv a.txt b.txt",
            &[(Removes, "build"), (Removes, "a.txt"), (Writes, "b.txt")],
        );
        check("cp a.txt b/c.txt", &[(Reads, "a.txt"), (Writes, "b/c.txt")]);
        check(
            "pytest tests/test_a.py -x > out.log 2>&1",
            &[(Reads, "tests/test_a.py"), (Writes, "out.log")],
        );
        check(
            "python run.py < in.txt 2>/dev/null",
            &[(Reads, "run.py"), (Reads, "in.txt")],
        );
        check("echo 'rm x.py' >> notes.md", &[(Writes, "notes.md")]);
        check(
            "git add src/a.rs && git commit -m 'see b.rs'",
            &[(Writes, "src/a.rs")],
        );
        check("FOO=1 sudo touch marker", &[(Writes, "marker")]);
        check("", &[]);
    }

    #[test]
    fn commands_that_only_read_are_known() {
        for (command, expected) in [
            ("cat a.rs | grep -n x", true),
            ("cd src && ls -la; git log --oneline", true),
            ("grep x a.rs 2>&1 > /dev/null", true),
            ("sed -n 1,5p a.rs", true),
            ("sed -i s/a/b/ a.rs", false),
            ("find . -name x -delete", false),
            ("echo x > a.txt", false),
            ("git commit -m x", false),
            ("cargo test", false),
            ("A=1", true),
            ("", true),
        ] {
            assert_eq!(is_read_only(command), expected, "{command}");
        }
    }

    #[test]
    fn here_documents_are_text() {
        use FileAccess::{Reads, Writes};
        check(
            "cat <<'EOF' > a.py\nopen('b.py')\nEOF\ncat c.py",
            &[(Writes, "a.py"), (Reads, "c.py")],
        );
        check("cat <<EOF", &[]);
        check("cat > x.txt <<-END\n never/read.py\n", &[(Writes, "x.txt")]);
    }

    #[test]
    fn hostile_lines_are_survived() {
        for line in [
            "'",
            "\"\\",
            "<<",
            "<<<",
            "> > >",
            "|||",
            "a\u{0}b",
            "2>&",
            "$(cat x.py)",
            "\\",
        ] {
            touched_files(line);
        }
        touched_files(&"<<a\n".repeat(50_000));
        touched_files(&"<<a ".repeat(50_000));
    }
}
