//! What is kept of requests that changed nothing, which come in stampedes when something is sold out: all that wait are committed
//! in one transaction, and each waits for its commit.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::answer::Answer;
use super::idempotency::{Attempt, Known};
use super::trail::{self, Entry};
use crate::db::{Db, Tx, transaction};
use crate::error::{Code, Error, Result};

/// What is to be kept of one request.
pub struct Kept {
    /// Its row of the audit trail.
    pub entry: Entry,
    /// Its answer, where it carried an `Idempotency-Key`.
    pub answer: Option<(Arc<Attempt>, Answer)>,
}

/// What the request is to be answered with instead, where another try of it was first.
type Outcome = Result<Option<Known>>;

/// The requests that wait. Whoever comes to the turn writes for all.
#[derive(Default)]
pub struct Group {
    waiting: Mutex<Vec<(Kept, oneshot::Sender<Outcome>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Group {
    /// Keeps this of a request for good.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keep(&self, db: &Db, kept: Kept) -> Outcome {
        let (sender, outcome) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((kept, sender));
        let turn = self.turn.lock().await;
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if !waiting.is_empty() {
            let (kept, senders): (Vec<Kept>, Vec<_>) = waiting.into_iter().unzip();
            match transaction!(db, |tx| write(tx, &kept).await) {
                Ok(known) => tell(senders, known.into_iter().map(Ok)),
                Err(error) => {
                    let others = std::iter::repeat_with(|| Err(Code::ServerUnavailable.into()));
                    tell(senders, std::iter::once(Err(error)).chain(others));
                }
            }
        }
        drop(turn);
        outcome.await.map_err(|_| Error::Internal(anyhow::anyhow!("who wrote for others has panicked")))?
    }
}

/// Tells each its outcome. One that has gone away meanwhile needs none.
fn tell(senders: Vec<oneshot::Sender<Outcome>>, outcomes: impl Iterator<Item = Outcome>) {
    for (sender, outcome) in senders.into_iter().zip(outcomes) {
        let _gone = sender.send(outcome);
    }
}

async fn write(tx: &mut Tx, kept: &[Kept]) -> Result<Vec<Option<Known>>> {
    let mut known = Vec::new();
    for Kept { answer, .. } in kept {
        known.push(match answer {
            None => None,
            Some((attempt, answer)) => {
                let found = attempt.claim(tx).await?;
                if found.is_none() {
                    attempt.keep(tx, answer).await?;
                }
                found
            }
        });
    }
    let of_its_own = kept.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(kept, _)| &kept.entry);
    trail::insert(tx, of_its_own).await?;
    Ok(known)
}
