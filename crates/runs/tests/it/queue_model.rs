//! Queues against a model: one list, of which the first so many have entered and the rest are parked.

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

use contexture_runs::{
    Abort, Channel, ChannelError, ChannelMode, ChannelSender, Channels, WaitTimeout,
};
use proptest::prelude::*;

use crate::manual_poll::Task;

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    Push,
    Receive,
    TryReceive,
    PollSender(usize),
    PollReceiver(usize),
    DropSender(usize),
    DropReceiver(usize),
    Close,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => Just(Op::Send),
        2 => Just(Op::Push),
        6 => Just(Op::Receive),
        3 => Just(Op::TryReceive),
        3 => any::<usize>().prop_map(Op::PollSender),
        3 => any::<usize>().prop_map(Op::PollReceiver),
        2 => any::<usize>().prop_map(Op::DropSender),
        3 => any::<usize>().prop_map(Op::DropReceiver),
    ];
    let close = proptest::option::weighted(0.3, any::<prop::sample::Index>());
    (prop::collection::vec(op, 1..80), close).prop_map(|(mut ops, close)| {
        if let Some(at) = close {
            ops.insert(at.index(ops.len()), Op::Close);
        }
        ops
    })
}

/// Every value is sent once, so it also names its sender; receivers are numbered.
#[derive(Debug, Default)]
struct Model {
    capacity: usize,
    closed: bool,
    values: VecDeque<u32>,
    entered: usize,
    receivers: VecDeque<u32>,
    handed: BTreeMap<u32, u32>,
}

impl Model {
    fn is_parked(&self, value: u32) -> bool {
        self.values
            .iter()
            .skip(self.entered)
            .any(|parked| *parked == value)
    }

    fn hand(&mut self, value: u32) -> bool {
        let receiver = self.receivers.pop_front();
        receiver.is_some_and(|receiver| self.handed.insert(receiver, value).is_none())
    }

    fn send(&mut self, value: u32) {
        if !self.hand(value) {
            self.values.push_back(value);
            self.let_in();
        }
    }

    fn push(&mut self, value: u32) {
        if !self.hand(value) {
            self.values.insert(self.entered, value);
            self.entered += 1;
            while self.entered > self.capacity {
                self.values.pop_front();
                self.entered -= 1;
            }
        }
    }

    fn take(&mut self) -> Option<u32> {
        if self.entered == 0 && self.closed {
            return None;
        }
        let taken = self.values.pop_front();
        self.entered = self.entered.saturating_sub(1);
        self.let_in();
        taken
    }

    fn let_in(&mut self) {
        if !self.closed {
            let room = self.capacity.min(self.values.len());
            self.entered = self.entered.max(room);
        }
    }

    fn withdraw(&mut self, value: u32) {
        if self.is_parked(value) {
            self.values.retain(|parked| *parked != value);
        }
    }

    fn leave(&mut self, receiver: u32) {
        self.receivers.retain(|waiting| *waiting != receiver);
        if let Some(value) = self.handed.remove(&receiver)
            && !self.hand(value)
        {
            self.values.push_front(value);
            self.entered += 1;
        }
    }

    /// What polling a parked sender gives; `None` while it waits.
    fn sender(&self, value: u32) -> Option<bool> {
        if self.is_parked(value) {
            self.closed.then_some(false)
        } else {
            Some(true)
        }
    }

    /// What polling a waiting receiver gives.
    fn receiver(&self, receiver: u32) -> Option<Option<u32>> {
        match self.handed.get(&receiver) {
            Some(value) => Some(Some(*value)),
            None => self.closed.then_some(None),
        }
    }
}

/// The queue, its model, and those who wait at both.
struct Pair {
    channels: Channels,
    channel: Channel<u32>,
    external: ChannelSender<u32>,
    model: Model,
    senders: Vec<(u32, Task<Result<(), ChannelError>>)>,
    receivers: Vec<(u32, Task<Result<u32, ChannelError>>)>,
    next: u32,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        let channels = Channels::new();
        let channel = Channel::new("queue", ChannelMode::Queue { capacity });
        Self {
            external: channels.external_sender(&channel).unwrap(),
            model: Model {
                capacity,
                ..Model::default()
            },
            channels,
            channel,
            senders: Vec::new(),
            receivers: Vec::new(),
            next: 0,
        }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send => self.send(),
            Op::Push => {
                let value = self.number();
                let pushed = self.external.send(value);
                assert_eq!(pushed.is_ok(), !self.model.closed);
                if pushed.is_ok() {
                    self.model.push(value);
                }
            }
            Op::Receive => self.receive(),
            Op::TryReceive => {
                assert_eq!(
                    self.channels.try_recv(&self.channel).unwrap(),
                    self.model.take()
                );
            }
            Op::PollSender(n) if !self.senders.is_empty() => {
                let at = n % self.senders.len();
                let sender = self.senders.swap_remove(at);
                self.poll_sender(sender);
            }
            Op::PollReceiver(n) if !self.receivers.is_empty() => {
                let at = n % self.receivers.len();
                let receiver = self.receivers.swap_remove(at);
                self.poll_receiver(receiver);
            }
            Op::DropSender(n) if !self.senders.is_empty() => {
                let at = n % self.senders.len();
                let (value, task) = self.senders.swap_remove(at);
                drop(task);
                self.model.withdraw(value);
            }
            Op::DropReceiver(n) if !self.receivers.is_empty() => {
                let at = n % self.receivers.len();
                let (receiver, task) = self.receivers.swap_remove(at);
                drop(task);
                self.model.leave(receiver);
            }
            Op::Close => {
                self.channels.close();
                self.model.closed = true;
            }
            Op::PollSender(_) | Op::PollReceiver(_) | Op::DropSender(_) | Op::DropReceiver(_) => {}
        }
        self.check_wakes();
    }

    fn send(&mut self) {
        let value = self.number();
        let (channels, channel) = (self.channels.clone(), self.channel.clone());
        let task = async move {
            channels
                .send(&channel, value, WaitTimeout::ForEver, &Abort::new())
                .await
        };
        let mut task = Task::new(task);
        if self.model.closed {
            assert!(matches!(
                task.poll(),
                Poll::Ready(Err(ChannelError::Closed { .. }))
            ));
            return;
        }
        self.model.send(value);
        self.poll_sender((value, task));
    }

    fn receive(&mut self) {
        let receiver = self.number();
        let (channels, channel) = (self.channels.clone(), self.channel.clone());
        let task = async move {
            channels
                .recv(&channel, WaitTimeout::ForEver, &Abort::new())
                .await
        };
        match self.model.take() {
            Some(value) => drop(self.model.handed.insert(receiver, value)),
            None if self.model.closed => {}
            None => self.model.receivers.push_back(receiver),
        }
        self.poll_receiver((receiver, Task::new(task)));
    }

    fn poll_sender(&mut self, (value, mut task): (u32, Task<Result<(), ChannelError>>)) {
        match (task.poll(), self.model.sender(value)) {
            (Poll::Pending, None) => self.senders.push((value, task)),
            (Poll::Ready(Ok(())), Some(true)) => {}
            (Poll::Ready(Err(ChannelError::Closed { .. })), Some(false)) => {
                self.model.withdraw(value)
            }
            (real, expected) => unreachable!("sender of {value}: {real:?}, expected {expected:?}"),
        }
    }

    fn poll_receiver(&mut self, (receiver, mut task): (u32, Task<Result<u32, ChannelError>>)) {
        match (task.poll(), self.model.receiver(receiver)) {
            (Poll::Pending, None) => self.receivers.push((receiver, task)),
            (Poll::Ready(Ok(value)), Some(Some(expected))) => {
                assert_eq!(value, expected);
                self.model.handed.remove(&receiver);
            }
            (Poll::Ready(Err(ChannelError::Closed { .. })), Some(None)) => {
                self.model.receivers.retain(|waiting| *waiting != receiver);
            }
            (real, expected) => {
                unreachable!("receiver {receiver}: {real:?}, expected {expected:?}")
            }
        }
    }

    /// Nobody sleeps who could go on.
    fn check_wakes(&self) {
        for (value, task) in &self.senders {
            assert!(
                task.was_woken() || self.model.sender(*value).is_none(),
                "sender of {value} sleeps"
            );
        }
        for (receiver, task) in &self.receivers {
            let ready = self.model.receiver(*receiver).is_some();
            assert!(task.was_woken() || !ready, "receiver {receiver} sleeps");
        }
    }

    /// All who wait go; what is left is what the model has left.
    fn finish(mut self) {
        while let Some((value, task)) = self.senders.pop() {
            drop(task);
            self.model.withdraw(value);
        }
        while let Some((receiver, task)) = self.receivers.pop() {
            drop(task);
            self.model.leave(receiver);
        }
        loop {
            let (left, expected) = (
                self.channels.try_recv(&self.channel).unwrap(),
                self.model.take(),
            );
            assert_eq!(left, expected);
            if left.is_none() {
                break;
            }
        }
    }
}

proptest! {
    #[test]
    fn queues_do_what_the_model_does(capacity in 0_usize..4, ops in ops()) {
        let mut pair = Pair::new(capacity);
        for op in ops {
            pair.apply(op);
        }
        pair.finish();
    }
}
