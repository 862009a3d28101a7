//! What is kept of requests that changed nothing, which come in stampedes when something is sold out: all that wait are committed
//! in one transaction, and each waits for its commit.

use std::slice;
use std::sync::Arc;

use super::answer::Answer;
use super::idempotency::{Attempt, Known};
use super::trail::{self, Entry};
use crate::db::{Batches, Db, Tx, transaction};
use crate::error::{Code, Result};

/// Requests that are written down at a time, at the most.
const BATCH: usize = 1000;

/// What is to be kept of one request.
pub struct Kept {
    /// Its row of the audit trail.
    pub entry: Entry,
    /// Its answer, where it carried an `Idempotency-Key`.
    pub answer: Option<(Arc<Attempt>, Answer)>,
}

/// What the request is to be answered with instead, where another try of it was first.
type Outcome = Result<Option<Known>>;

/// The requests that wait.
pub struct Group(Arc<Batches<(), Kept, Outcome>>);

impl Default for Group {
    fn default() -> Self {
        Self(Batches::of(BATCH))
    }
}

impl Group {
    /// Keeps this of a request for good.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keep(&self, db: &Db, kept: Kept) -> Outcome {
        let db = db.clone();
        self.0.join((), kept, move |(), kept| write_together(db.clone(), kept)).await?
    }
}

async fn write_together(db: Db, kept: Vec<Kept>) -> Result<Vec<Outcome>> {
    match transaction!(db, |tx| write(tx, &kept).await) {
        Ok(known) => Ok(known.into_iter().map(Ok).collect()),
        Err(error) if error.is_certain() && kept.len() > 1 => Ok(write_each(&db, &kept).await),
        Err(error) => Err(error),
    }
}

/// Writes each by itself, because there is one among them that the database doesn't take: so that none fails for another. Where
/// the database goes away meanwhile, the others are not tried.
async fn write_each(db: &Db, kept: &[Kept]) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(kept.len());
    for one in kept {
        if outcomes.last().is_some_and(|last| last.as_ref().is_err_and(|error| !error.is_certain())) {
            outcomes.push(Err(Code::ServerUnavailable.into()));
            continue;
        }
        let written = transaction!(db, |tx| write(tx, slice::from_ref(one)).await);
        outcomes.push(written.map(|known| known.into_iter().next().flatten()));
    }
    outcomes
}

async fn write(tx: &mut Tx, kept: &[Kept]) -> Result<Vec<Option<Known>>> {
    let attempts: Vec<&Attempt> = kept.iter().filter_map(|kept| Some(&*kept.answer.as_ref()?.0)).collect();
    let mut found = Attempt::claim_all(tx, &attempts).await?.into_iter();
    let known: Vec<Option<Known>> = kept.iter().map(|kept| kept.answer.as_ref().and_then(|_| found.next().flatten())).collect();
    let of_their_own = kept.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(kept, _)| kept);
    keep(tx, of_their_own).await?;
    Ok(known)
}

/// Writes down what is kept of requests that are their tries' own.
///
/// # Errors
/// When the database fails.
pub(super) async fn keep<'a>(tx: &mut Tx, kept: impl IntoIterator<Item = &'a Kept>) -> Result<()> {
    let kept: Vec<&Kept> = kept.into_iter().collect();
    let answers = kept.iter().filter_map(|kept| kept.answer.as_ref()).map(|(attempt, answer)| (&**attempt, answer));
    Attempt::keep_all(tx, answers).await?;
    trail::insert(tx, kept.iter().map(|kept| &kept.entry)).await
}
