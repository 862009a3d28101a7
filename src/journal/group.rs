//! What is kept of requests that changed nothing, which come in stampedes when something is sold out: all that wait are committed
//! in one transaction, and each waits for its commit.

use std::slice;
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
            let outcomes = match transaction!(db, |tx| write(tx, &kept).await) {
                Ok(known) => known.into_iter().map(Ok).collect(),
                Err(error) if error.is_certain() && kept.len() > 1 => write_each(db, &kept).await,
                Err(error) => vec![Err(error)],
            };
            tell(senders, outcomes);
        }
        drop(turn);
        outcome.await.map_err(|_| Error::Internal(anyhow::anyhow!("who wrote for others has panicked")))?
    }
}

/// Tells each its outcome; those for whom it wasn't tried, that the database is away. One that has gone away meanwhile needs none.
fn tell(senders: Vec<oneshot::Sender<Outcome>>, outcomes: Vec<Outcome>) {
    let untried = std::iter::repeat_with(|| Err(Code::ServerUnavailable.into()));
    for (sender, outcome) in senders.into_iter().zip(outcomes.into_iter().chain(untried)) {
        let _gone = sender.send(outcome);
    }
}

/// Writes each by itself, because there is one among them that the database doesn't take: so that none fails for another. Where
/// the database goes away meanwhile, that is the last outcome.
async fn write_each(db: &Db, kept: &[Kept]) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(kept.len());
    for one in kept {
        let written = transaction!(db, |tx| write(tx, slice::from_ref(one)).await);
        let is_away = written.as_ref().is_err_and(|error| !error.is_certain());
        outcomes.push(written.map(|known| known.into_iter().next().flatten()));
        if is_away {
            break;
        }
    }
    outcomes
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
