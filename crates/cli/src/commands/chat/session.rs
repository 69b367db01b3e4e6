//! A chat: what becomes of a line that is said, and of a command.

use std::ops::ControlFlow;
use std::sync::Arc;

use contexture::compile::{Width, read_tool, render_table};
use contexture::engine::CompactOptions;
use contexture::ir::Role;
use contexture::layers::builtin::UnknownFields;
use contexture::runs::{Agent, Run, RunStatus, list_runs, waiting_calls};
use contexture::store::{NodeKind, PathEnd, ReadRequest, read_all_pages};
use contexture::{Conversation, Item, Message};

use crate::chat::{AgentArguments, RunPrinter, drive_run, next_commands, print_run_result};
use crate::commands::chat::slash::{HELP, HELP_INDENT, SlashCommand};
use crate::commands::{branch, checkpoint, compact, memory, skills};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{count_with_noun, short_id};
use crate::output::terminal::{Stream, column_count};
use crate::output::write;
use crate::skill_folders;

/// What a chat is about.
pub(super) struct Chat<'a> {
    pub(super) talk: &'a AgentArguments,
    pub(super) globals: &'a Globals,
    pub(super) conversation: Conversation,
    pub(super) agent: Agent,
    pub(super) printer: Arc<RunPrinter>,
}

impl Chat<'_> {
    /// What becomes of a line; a break leaves, with how that was.
    pub(super) async fn process_line(&self, line: &str) -> Outcome<ControlFlow<Exit>> {
        if line.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if line.starts_with('/') {
            return self.run_command(SlashCommand::parse(line)?).await;
        }
        let said = Item::Message(Message::text(Role::User, line));
        let mut run = Run::begin(&self.conversation, &self.agent, [said]).await?;
        let driven = drive_run(&mut run).await;
        self.printer.close_line();
        match print_run_result(driven, &run, self.talk, self.globals).await? {
            Exit::Done => Ok(ControlFlow::Continue(())),
            // Approval was not given here: the chat ends, and the commands shown say how to go on.
            waiting => Ok(ControlFlow::Break(waiting)),
        }
    }

    /// Tells which runs of the conversation wait for a decision, from before this chat.
    pub(super) async fn print_waiting_runs(&self) -> Outcome<()> {
        let (engine, owner) = (self.conversation.engine(), self.conversation.owner());
        let found = list_runs(engine, owner, Some(&self.conversation)).await?;
        for entry in found.into_iter().rev() {
            if entry.status == RunStatus::Waiting {
                let calls = waiting_calls(engine, owner, &entry).await?;
                write::print_stderr(&format!("run {} ", short_id(&entry.run)));
                let options = self.talk.to_arguments(self.globals);
                write::print_stderr(&next_commands(&entry.run, &calls, &options));
            }
        }
        Ok(())
    }

    /// Carries out a command; a break leaves.
    async fn run_command(&self, command: SlashCommand) -> Outcome<ControlFlow<Exit>> {
        let (chat, globals) = (&self.conversation, self.globals);
        match command {
            SlashCommand::Quit => return Ok(ControlFlow::Break(Exit::Done)),
            SlashCommand::Help => write::print_wrapped(HELP, HELP_INDENT)?,
            SlashCommand::Branches => branch::print_branches(chat, globals).await?,
            SlashCommand::Branch(name) => self.switch_or_create_branch(&name).await?,
            SlashCommand::Rewind(count) => self.rewind_messages(count).await?,
            SlashCommand::Checkpoint(name) => {
                let made = checkpoint::create_checkpoint(chat, &name).await?;
                checkpoint::print_checkpoint(&(&made).into(), globals)?
            }
            SlashCommand::Compact => {
                let target = self.talk.resolve_target()?;
                let stored = chat.compact(&target, &CompactOptions::default()).await?;
                compact::print_compaction(&stored.draft, Some(stored.node.to_string()), globals)?;
            }
            SlashCommand::Explain => self.print_report().await?,
            SlashCommand::Skills => self.print_skills()?,
            SlashCommand::Memory => self.print_notes().await?,
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn switch_or_create_branch(&self, name: &str) -> Outcome<()> {
        let there = self.conversation.refs().await?.branches;
        // One command for both, as people say it in a chat: a new name means a new branch.
        if !there.iter().any(|branch| branch.name.as_str() == name) {
            self.conversation.create_branch(name).await?;
        }
        let branch = self.conversation.switch_branch(name).await?;
        branch::print_branch("now on", &branch, self.globals)
    }

    async fn rewind_messages(&self, count: usize) -> Outcome<()> {
        let chat = &self.conversation;
        let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
        let store = &**chat.engine().store();
        let page = read_all_pages(store, chat.owner(), chat.id(), request).await?;
        let said = page.nodes.iter().rev();
        // Counted backwards by what the person said, and not by items: an answer may have many.
        let mut said = said.filter(|node| node.kind == NodeKind::User);
        let Some(node) = said.nth(count - 1) else {
            let found = page.nodes.iter().filter(|node| node.kind == NodeKind::User);
            return Err(match found.count() {
                0 => Failure::usage("you have said nothing here yet"),
                all => {
                    let things = count_with_noun(all as u64, "thing");
                    let message = format!("you have said only {things} here");
                    Failure::usage(message).with_hint(format!("/rewind {all} begins anew"))
                }
            });
        };
        let branch = match node.parent {
            Some(before) => chat.rewind_to(before).await?,
            // Nothing stands before the first thing that was said: an empty branch.
            None => chat.clear().await?,
        };
        branch::print_branch("now on", &branch, self.globals)
    }

    async fn print_report(&self) -> Outcome<()> {
        // The tool that every turn has takes tokens too.
        let target = self.talk.resolve_target()?.add_tools([read_tool()]);
        let call = self.conversation.compile(&target).await?;
        if self.globals.json {
            return write::print_json(&call.report);
        }
        let table = render_table(&call.report, Width(column_count(Stream::Output)));
        write::print_styled(&format!("\n{table}\n"))
    }

    fn print_skills(&self) -> Outcome<()> {
        let folders = self.talk.layer_arguments().skill_folders();
        if folders.is_empty() {
            let message = "no skills: this chat was begun without --skills FOLDER";
            return Err(Failure::usage(message));
        }
        let found = skill_folders::scan_skills(folders, UnknownFields::Note)?;
        skills::print_skills(&found, self.globals).map(|_| ())
    }

    async fn print_notes(&self) -> Outcome<()> {
        let Some(keeper) = self.talk.layer_arguments().note_scope() else {
            let message = "no notes: this chat was begun without --memory";
            return Err(Failure::usage(message));
        };
        memory::list_notes(&self.conversation, keeper, self.globals).await
    }
}
