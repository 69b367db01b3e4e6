//! Many senders and receivers at once, on several threads, some of which give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contexture_runs::{Abort, Channel, ChannelError, ChannelMode, Channels, WaitTimeout};

const EACH: u64 = 300;

/// Every value whose sending succeeded is received exactly once; none whose sending failed is. Ends only if nobody
/// sleeps for ever.
async fn crowd(capacity: usize) {
    let channels = Channels::new();
    let channel = Channel::<u64>::new("crowd", ChannelMode::Queue { capacity });
    let (sent, received) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for sender in 0..8 {
        let (channels, channel, sent) = (channels.clone(), channel.clone(), Arc::clone(&sent));
        tasks.spawn(async move {
            for n in 0..EACH {
                let value = sender * EACH + n + 1;
                let abort = Abort::new();
                let sending = channels.send(&channel, value, WaitTimeout::ForEver, &abort);
                let gives_up = async {
                    if n % 3 == 0 {
                        tokio::task::yield_now().await;
                        abort.abort("gives up");
                    }
                };
                let (result, ()) = tokio::join!(sending, gives_up);
                match result {
                    Ok(()) => drop(sent.fetch_add(value, Ordering::SeqCst)),
                    Err(ChannelError::Cancelled(_)) => {}
                    Err(error) => unreachable!("{error}"),
                }
            }
        });
    }
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..4_u64 {
        let (channels, channel, received) =
            (channels.clone(), channel.clone(), Arc::clone(&received));
        readers.spawn(async move {
            for n in 0.. {
                let abort = Abort::new();
                let receiving = channels.recv(&channel, WaitTimeout::ForEver, &abort);
                let gives_up = async {
                    if (n + reader) % 2 == 0 {
                        tokio::task::yield_now().await;
                        abort.abort("gives up");
                    }
                };
                match tokio::join!(receiving, gives_up).0 {
                    Ok(value) => drop(received.fetch_add(value, Ordering::SeqCst)),
                    Err(ChannelError::Cancelled(_)) => {}
                    Err(_) => break,
                }
            }
        });
    }
    tasks.join_all().await;
    channels.close();
    readers.join_all().await;
    while let Some(left) = channels.try_recv(&channel).unwrap() {
        received.fetch_add(left, Ordering::SeqCst);
    }
    assert_eq!(sent.load(Ordering::SeqCst), received.load(Ordering::SeqCst));
    assert!(sent.load(Ordering::SeqCst) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_in_a_crowd() {
    for capacity in [0, 1, 16] {
        crowd(capacity).await;
    }
}
