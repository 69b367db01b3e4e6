//! A chat: what becomes of a line that is said, and of a command.

use std::ops::ControlFlow;
use std::sync::Arc;

use contexture::compile::{Width, read_tool, render_table};
use contexture::layers::builtin::UnknownFields;
use contexture::runs::{Agent, Run, RunStatus, runs, waiting_calls};
use contexture::store::{At, NodeKind, ReadRequest};
use contexture::{CompactOptions, Conversation, Item, Message, Role};

use super::slash::{HELP, Slash};
use crate::commands::{branch, checkpoint, compact, memory, skills};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::printable::{counted, short};
use crate::talk::{TalkArguments, Teller, drive, tell, what_to_do};
use crate::{say, skill_folders, terminal};

/// What a chat is about.
pub(super) struct Chat<'a> {
    pub(super) talk: &'a TalkArguments,
    pub(super) globals: &'a Globals,
    pub(super) conversation: Conversation,
    pub(super) agent: Agent,
    pub(super) teller: Arc<Teller>,
}

impl Chat<'_> {
    /// What becomes of a line; a break leaves, with how that was.
    pub(super) async fn turn(&self, line: &str) -> Outcome<ControlFlow<Exit>> {
        if line.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if line.starts_with('/') {
            return self.command(Slash::parse(line)?).await;
        }
        let said = Item::Message(Message::text(Role::User, line));
        let mut run = Run::begin(&self.conversation, &self.agent, [said]).await?;
        let driven = drive(&mut run).await;
        self.teller.close();
        match tell(driven, &run, self.talk, self.globals).await? {
            Exit::Done => Ok(ControlFlow::Continue(())),
            waiting => Ok(ControlFlow::Break(waiting)),
        }
    }

    /// Tells which runs of the conversation wait for a decision, from before this chat.
    pub(super) async fn tell_waiting(&self) -> Outcome<()> {
        let (engine, owner) = (self.conversation.engine(), self.conversation.owner());
        let found = runs(engine, owner, Some(&self.conversation)).await?;
        for entry in found.into_iter().rev() {
            if entry.status == RunStatus::Waiting {
                let calls = waiting_calls(engine, owner, &entry).await?;
                say::aside(&format!("run {} ", short(&entry.run)));
                let options = self.talk.words(self.globals);
                say::aside(&what_to_do(&entry.run, &calls, &options));
            }
        }
        Ok(())
    }

    /// Carries out a command; a break leaves.
    async fn command(&self, command: Slash) -> Outcome<ControlFlow<Exit>> {
        let (chat, globals) = (&self.conversation, self.globals);
        match command {
            Slash::Quit => return Ok(ControlFlow::Break(Exit::Done)),
            Slash::Help => say::styled(HELP)?,
            Slash::Branches => branch::list(chat, globals).await?,
            Slash::Branch(name) => self.branch(&name).await?,
            Slash::Rewind(count) => self.rewind(count).await?,
            Slash::Checkpoint(name) => checkpoint::tell(&chat.checkpoint(&name).await?, globals)?,
            Slash::Compact => {
                let target = self.talk.target()?;
                let stored = chat.compact(&target, &CompactOptions::default()).await?;
                compact::tell(&stored.draft, Some(stored.node.to_string()), globals)?;
            }
            Slash::Explain => self.explain().await?,
            Slash::Skills => self.skills()?,
            Slash::Memory => self.memory().await?,
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn branch(&self, name: &str) -> Outcome<()> {
        let there = self.conversation.refs().await?.branches;
        if !there.iter().any(|branch| branch.name.as_str() == name) {
            self.conversation.create_branch(name).await?;
        }
        let branch = self.conversation.switch_branch(name).await?;
        branch::tell("now on", &branch, self.globals)
    }

    async fn rewind(&self, count: usize) -> Outcome<()> {
        let chat = &self.conversation;
        let request = ReadRequest::whole(At::Branch(chat.branch()));
        let store = chat.engine().store();
        let page = store.read(chat.owner(), chat.id(), request).await?;
        let said = page.nodes.iter().rev();
        let mut said = said.filter(|node| node.kind == NodeKind::User);
        let Some(node) = said.nth(count - 1) else {
            let found = page.nodes.iter().filter(|node| node.kind == NodeKind::User);
            return Err(match found.count() {
                0 => Failure::usage("you have said nothing here yet"),
                all => {
                    let things = counted(all as u64, "thing");
                    let message = format!("you have said only {things} here");
                    Failure::usage(message).hint(format!("/rewind {all} begins anew"))
                }
            });
        };
        let branch = match node.parent {
            Some(before) => chat.rewind_to(before).await?,
            // Nothing stands before the first thing that was said: an empty branch.
            None => chat.clear().await?,
        };
        branch::tell("now on", &branch, self.globals)
    }

    async fn explain(&self) -> Outcome<()> {
        let target = self.talk.target()?.also_tools([read_tool()]);
        let call = self.conversation.compile(&target).await?;
        if self.globals.json {
            return say::json(&call.report);
        }
        let table = render_table(&call.report, Width(terminal::columns(120)));
        say::styled(&format!("\n{table}\n"))
    }

    fn skills(&self) -> Outcome<()> {
        let folders = self.talk.layers().skill_folders();
        if folders.is_empty() {
            let message = "no skills: this chat was begun without --skills FOLDER";
            return Err(Failure::usage(message));
        }
        let found = skill_folders::read(folders, UnknownFields::Note)?;
        skills::list(&found, self.globals).map(|_| ())
    }

    async fn memory(&self) -> Outcome<()> {
        let Some(keeper) = self.talk.layers().keeper() else {
            let message = "no notes: this chat was begun without --memory";
            return Err(Failure::usage(message));
        };
        memory::list(&self.conversation, keeper, self.globals).await
    }
}
