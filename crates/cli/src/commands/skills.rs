//! `contexture skills`: instructions in folders, by the published specification of `SKILL.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use contexture::layers::builtin::UnknownFields;
use contexture_server::documents::SkillDocument;
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::printable::{clip, counted, lines, one_line, pad, width};
use crate::skill_folders::{Found, Problem, read};
use crate::{say, terminal};

/// The fewest columns a description takes.
const NARROWEST: usize = 20;

/// List, check or show skills
#[derive(Debug, Args)]
#[command(after_long_help = "\
A folder holds skills, each in a folder of its own: FOLDER/NAME/SKILL.md. Of two skills of one name
that of the folder named first counts.

Examples:
  contexture skills list .agents/skills ~/.agents/skills
  contexture skills check .agents/skills
  contexture skills show pdf-forms .agents/skills
  contexture compile support-42 --to anthropic --skills .agents/skills")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the skills as a model sees them: names and descriptions
    List {
        #[command(flatten)]
        folders: Folders,
    },
    /// Hold every skill against the specification; a problem makes the exit code 1
    Check {
        #[command(flatten)]
        folders: Folders,
    },
    /// Show a skill's instructions
    Show {
        /// The skill
        name: String,
        #[command(flatten)]
        folders: Folders,
    },
}

#[derive(Debug, Args)]
struct Folders {
    /// Folders that hold skills
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A folder cannot be read, or there is no such skill.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    match &arguments.action {
        Action::List { folders } => list(&read(&folders.folders, UnknownFields::Note)?, globals),
        // As strict as the specification's own checker.
        Action::Check { folders } => {
            check(&read(&folders.folders, UnknownFields::Refuse)?, globals)
        }
        Action::Show { name, folders } => {
            let found = read(&folders.folders, UnknownFields::Note)?;
            show(&found, name, globals)
        }
    }
}

/// Lists skills that were found.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn list(found: &Found, globals: &Globals) -> Outcome {
    if globals.json {
        let document = |skill| SkillDocument::listed(skill).placed(skill);
        let skills: Vec<_> = found.skills.iter().map(document).collect();
        say::json(&json!({ "skills": skills, "problems": found.problems }))?;
        return Ok(Exit::Done);
    }
    let names = found.skills.iter().map(|skill| width(&skill.name)).max();
    let names = names.unwrap_or(0);
    let rest = terminal::columns(120).saturating_sub(names + 2);
    let mut out = String::new();
    for skill in &found.skills {
        let about = clip(&one_line(&skill.description), rest.max(NARROWEST));
        let _ = writeln!(out, "{}  {about}", pad(&skill.name, names).bold());
    }
    say::styled(&out)?;
    if !globals.quiet {
        for problem in &found.problems {
            say::warning(&problem.to_string());
        }
        if found.skills.is_empty() {
            say::aside("no skills; each is a folder with a SKILL.md\n");
        }
    }
    Ok(Exit::Done)
}

fn check(found: &Found, globals: &Globals) -> Outcome {
    let exit = match found.problems.is_empty() {
        true => Exit::Done,
        false => Exit::Findings,
    };
    if globals.json {
        let skills: Vec<&str> = found.skills.iter().map(|skill| &*skill.name).collect();
        say::json(&json!({ "skills": skills, "problems": found.problems }))?;
        return Ok(exit);
    }
    let mut out = String::new();
    for Problem {
        path,
        rule,
        message,
    } in &found.problems
    {
        let _ = writeln!(out, "{}  {}", lines(path).bold(), rule.yellow());
        let _ = writeln!(out, "  {}", one_line(message));
    }
    say::styled(&out)?;
    if !globals.quiet {
        let skills = counted(found.skills.len() as u64, "skill");
        let problems = match found.problems.len() as u64 {
            0 => "no problems".to_owned(),
            count => counted(count, "problem"),
        };
        say::aside(&format!("{skills}, {problems}\n"));
    }
    Ok(exit)
}

fn show(found: &Found, name: &str, globals: &Globals) -> Outcome {
    let Some(skill) = found.skills.iter().find(|skill| skill.name == name) else {
        return Err(missing(found, name));
    };
    if globals.json {
        say::json(&SkillDocument::whole(skill).placed(skill))?;
    } else {
        say::raw(&lines(&skill.instructions))?;
    }
    Ok(Exit::Done)
}

/// There is no such skill; why it is none, if it lies there.
fn missing(found: &Found, name: &str) -> Failure {
    let failure = Failure::new(Exit::NotFound, "no_skill", format!("no skill {name:?}"));
    let of_it = found
        .problems
        .iter()
        .filter(|problem| Path::new(&problem.path).ends_with(name));
    let failure = of_it.fold(failure, |failure, problem| {
        failure.note(problem.to_string())
    });
    let names: Vec<&str> = found.skills.iter().map(|skill| &*skill.name).collect();
    match names.as_slice() {
        [] => failure.hint("the folders hold no skill: FOLDER/NAME/SKILL.md"),
        names => failure.hint(format!("there are: {}", names.join(", "))),
    }
}
