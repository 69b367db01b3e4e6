//! `contexture skills`: instructions in folders, by the published specification of `SKILL.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use contexture::layers::builtin::{Skill, UnknownFields};
use contexture_api::SkillDocument;
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{count_with_noun, one_line, printable_lines};
use crate::output::table::Column;
use crate::output::write;
use crate::skill_folders::{ScannedSkills, SkillProblem, scan_skills};

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
    action: SkillAction,
}

#[derive(Debug, Subcommand)]
enum SkillAction {
    /// List the skills as a model sees them: names and descriptions
    List {
        #[command(flatten)]
        folders: FolderArguments,
    },
    /// Hold every skill against the specification; a problem makes the exit code 1
    Check {
        #[command(flatten)]
        folders: FolderArguments,
    },
    /// Show a skill's instructions
    Show {
        /// The skill
        name: String,
        #[command(flatten)]
        folders: FolderArguments,
    },
}

#[derive(Debug, Args)]
struct FolderArguments {
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
        SkillAction::List { folders } => print_skills(
            &scan_skills(&folders.folders, UnknownFields::Note)?,
            globals,
        ),
        // As strict as the specification's own checker.
        SkillAction::Check { folders } => check_skills(
            &scan_skills(&folders.folders, UnknownFields::Refuse)?,
            globals,
        ),
        SkillAction::Show { name, folders } => {
            let found = scan_skills(&folders.folders, UnknownFields::Note)?;
            print_skill(&found, name, globals)
        }
    }
}

/// Lists skills that were found.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_skills(found: &ScannedSkills, globals: &Globals) -> Outcome {
    if globals.json {
        let document = |skill| SkillDocument::without_instructions(skill).with_folder(skill);
        let skills: Vec<_> = found.skills.iter().map(document).collect();
        write::print_json(&json!({ "skills": skills, "problems": found.problems }))?;
        return Ok(Exit::Done);
    }
    let row = |skill: &Skill| vec![skill.name.clone(), skill.description.clone()];
    let rows: Vec<_> = found.skills.iter().map(row).collect();
    let columns = [
        Column::id("").with_paint(|name| name.bold().to_string()),
        Column::words("", 12),
    ];
    write::print_table(&columns, &rows)?;
    if !globals.quiet {
        for problem in &found.problems {
            write::print_warning(&problem.to_string());
        }
        if found.skills.is_empty() {
            write::print_note("no skills; each is a folder with a SKILL.md\n");
        }
    }
    Ok(Exit::Done)
}

fn problem_list(problems: &[SkillProblem]) -> String {
    let mut out = String::new();
    for SkillProblem {
        path,
        rule,
        message,
    } in problems
    {
        let _ = writeln!(out, "{}  {}", printable_lines(path).bold(), rule.yellow());
        let _ = writeln!(out, "  {}", one_line(message));
    }
    out
}

fn check_skills(found: &ScannedSkills, globals: &Globals) -> Outcome {
    let exit = match found.problems.is_empty() {
        true => Exit::Done,
        false => Exit::Findings,
    };
    if globals.json {
        let skills: Vec<&str> = found.skills.iter().map(|skill| &*skill.name).collect();
        write::print_json(&json!({ "skills": skills, "problems": found.problems }))?;
        return Ok(exit);
    }
    write::print_sentence(&problem_list(&found.problems))?;
    if !globals.quiet {
        let skills = count_with_noun(found.skills.len() as u64, "skill");
        let problems = match found.problems.len() as u64 {
            0 => "no problems".to_owned(),
            count => count_with_noun(count, "problem"),
        };
        write::print_note(&format!("{skills}, {problems}\n"));
    }
    Ok(exit)
}

fn print_skill(found: &ScannedSkills, name: &str, globals: &Globals) -> Outcome {
    let Some(skill) = found.skills.iter().find(|skill| skill.name == name) else {
        return Err(skill_not_found(found, name));
    };
    if globals.json {
        write::print_json(&SkillDocument::with_instructions(skill).with_folder(skill))?;
    } else {
        write::print_text(&printable_lines(&skill.instructions))?;
    }
    Ok(Exit::Done)
}

/// There is no such skill; why it is none, if it lies there.
fn skill_not_found(found: &ScannedSkills, name: &str) -> Failure {
    let failure = Failure::new(Exit::NotFound, "no_skill", format!("no skill {name:?}"));
    let of_it = found
        .problems
        .iter()
        // A skill that was refused is there and yet not found: then its problems are the answer.
        .filter(|problem| Path::new(&problem.path).ends_with(name));
    let failure = of_it.fold(failure, |failure, problem| {
        failure.with_note(problem.to_string())
    });
    let names: Vec<&str> = found.skills.iter().map(|skill| &*skill.name).collect();
    match names.as_slice() {
        [] => failure.with_hint("the folders hold no skill: FOLDER/NAME/SKILL.md"),
        names => failure.with_hint(format!("there are: {}", names.join(", "))),
    }
}
