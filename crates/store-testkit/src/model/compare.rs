//! Compares what a store returns for a conversation with the model.

use contexture_store::{KeyScope, ListEntries, PathEnd, ReadRequest};

use super::{Model, expect_equal, parse_branch_name, process_id};
use crate::chat::Chat;

impl Model {
    /// Compares branches and checkpoints.
    pub(super) async fn compare_names(&self, chat: &Chat) -> Result<(), String> {
        let refs = chat.store.list_refs(&chat.owner, &chat.id).await;
        let refs = refs.map_err(|error| error.to_string())?;
        // In the order of the store, which must be that of creation.
        let got: Vec<_> = refs
            .branches
            .iter()
            .map(|branch| {
                (
                    branch.name.as_str(),
                    branch.nodes,
                    branch.active,
                    branch.fence.0,
                    branch.holder.map(|holder| holder.process),
                )
            })
            .collect();
        let wanted: Vec<_> = self
            .branches
            .iter()
            .map(|branch| {
                let active = branch.name == self.active;
                (
                    branch.name.as_str(),
                    branch.path.len() as u64,
                    active,
                    branch.fence,
                    branch.holder.map(process_id),
                )
            })
            .collect();
        expect_equal("branches", &got, &wanted)?;
        let got = refs.checkpoints.iter();
        let got: Vec<_> = got.map(|c| (c.name.to_string(), c.node)).collect();
        let wanted = self.checkpoints.iter();
        let wanted: Vec<_> = wanted
            .map(|(c, n)| (c.clone(), self.nodes[*n].id))
            .collect();
        expect_equal("checkpoints", &got, &wanted)
    }

    /// Compares everything else that can be read.
    pub(super) async fn compare_contents(&self, chat: &Chat) -> Result<(), String> {
        for branch in &self.branches {
            let at = PathEnd::Branch(parse_branch_name(&branch.name));
            self.compare_path(chat, at, &branch.path).await?;
        }
        for node in self.checkpoints.values() {
            let node = &self.nodes[*node];
            self.compare_path(chat, PathEnd::Node(node.id), &node.path)
                .await?;
        }
        // Deleted values are not listed, though the model keeps them for their versions.
        let list = ListEntries::in_scope(KeyScope::Conversation(chat.id.clone()), "");
        let kept = chat.store.list_entries(&chat.owner, list).await;
        let kept = kept.map_err(|error| error.to_string())?.entries;
        let got = kept.iter().map(|(_, entry)| {
            let value = entry.value.first().copied();
            (entry.key.clone(), (value, entry.version))
        });
        let wanted = self
            .entries
            .iter()
            .filter(|(_, (value, _))| value.is_some());
        let wanted: Vec<_> = wanted
            .map(|(key, entry)| (key.to_string(), *entry))
            .collect();
        expect_equal("values", &got.collect::<Vec<_>>(), &wanted)?;
        let record = chat.store.load_conversation(&chat.owner, &chat.id).await;
        let record = record.map_err(|error| error.to_string())?;
        expect_equal("nodes", &record.nodes, &(self.nodes.len() as u64))?;
        let events = chat
            .store
            .list_events(&chat.owner, &chat.id, 0, usize::MAX)
            .await;
        let events = events.map_err(|error| error.to_string())?;
        expect_equal("events", &(events.len() as u64), &self.events)
    }

    async fn compare_path(&self, chat: &Chat, at: PathEnd, path: &[usize]) -> Result<(), String> {
        let page = chat.read_path(ReadRequest::whole_path(at.clone())).await;
        let page = page.map_err(|error| error.to_string())?;
        let got: Vec<_> = page
            .nodes
            .iter()
            .map(|node| (node.id, &*node.json))
            .collect();
        let wanted = path.iter().map(|n| &self.nodes[*n]);
        let wanted: Vec<_> = wanted.map(|node| (node.id, &*node.json)).collect();
        expect_equal("path", &got, &wanted)?;
        // The last nodes alone as well: a store may read them in another way than the whole path.
        let tail = chat.read_path(ReadRequest::last_nodes(at.clone(), 3)).await;
        let tail = tail.map_err(|error| error.to_string())?.nodes;
        expect_equal(
            "tail",
            &tail[..],
            &page.nodes[page.nodes.len().saturating_sub(3)..],
        )?;
        let got: Vec<(String, String)> = chat
            .state_values(at)
            .await
            .into_iter()
            .map(|(key, _, value)| (key, value))
            .collect();
        let state = path.last().map(|last| &self.nodes[*last].state);
        let wanted: Vec<(String, String)> = state
            .into_iter()
            .flatten()
            .map(|(key, value)| (format!("layer {key}"), value.to_string()))
            .collect();
        expect_equal("state", &got, &wanted)
    }
}
