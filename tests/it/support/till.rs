//! The payment gateway of the tests: the sandbox, with a till that can be counted and a cashier who can be kept waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use boxoffice::payments::{CancelCharge, Charge, Gateway, Outcome, Refund, Sandbox};
use tokio::sync::watch;

/// What was taken and not given back, and the refunds that were done.
pub type Books = (BTreeMap<i64, i64>, BTreeSet<i64>);

/// The gateway, and what a test does with it.
#[derive(Clone, Default)]
pub struct Till(Arc<State>);

#[derive(Default)]
struct State {
    /// What was taken and not given back, in minor units, by payment.
    taken: Mutex<BTreeMap<i64, i64>>,
    /// The refunds that were done.
    refunds: Mutex<BTreeSet<i64>>,
    /// Charges that have been answered with money taken, ever.
    charges: AtomicUsize,
    is_held: watch::Sender<bool>,
    loses_answers: AtomicBool,
    refuses_refunds: AtomicBool,
    /// The payments that are never given back.
    stuck: Mutex<BTreeSet<i64>>,
    loses_refunds_answers: AtomicBool,
    /// Undoings that were asked for, ever.
    undoings: AtomicUsize,
    undoings_are_held: watch::Sender<bool>,
}

impl Till {
    /// The money in it.
    pub fn total(&self) -> f64 {
        f64::from(i32::try_from(self.0.taken.lock().unwrap().values().sum::<i64>()).unwrap()) / 100.0
    }

    /// A copy of its books.
    pub fn books(&self) -> Books {
        (self.0.taken.lock().unwrap().clone(), self.0.refunds.lock().unwrap().clone())
    }

    /// Makes its books again what they were.
    pub fn reopen(&self, (taken, refunds): &Books) {
        self.0.taken.lock().unwrap().clone_from(taken);
        self.0.refunds.lock().unwrap().clone_from(refunds);
    }

    /// How many charges have taken money, whether or not it was given back.
    pub fn charges(&self) -> usize {
        self.0.charges.load(Ordering::SeqCst)
    }

    /// Keeps the answers of charges back, once their money is taken, until they are [`Till::release`]d.
    pub fn hold(&self) {
        self.0.is_held.send_replace(true);
    }

    /// Lets the answers go.
    pub fn release(&self) {
        self.0.is_held.send_replace(false);
    }

    /// Waits until that many charges have taken money.
    pub async fn until(&self, charges: usize) {
        while self.charges() < charges {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether charges take the money and then fail.
    pub fn lose_answers(&self, lose: bool) {
        self.0.loses_answers.store(lose, Ordering::SeqCst);
    }

    /// Whether refunds give the money back and then fail.
    pub fn lose_refunds_answers(&self, lose: bool) {
        self.0.loses_refunds_answers.store(lose, Ordering::SeqCst);
    }

    /// Whether refunds fail, and charges can't be undone.
    pub fn refuse_refunds(&self, refuse: bool) {
        self.0.refuses_refunds.store(refuse, Ordering::SeqCst);
    }

    /// Keeps undoings waiting, before they give anything back, until this is called with `false`.
    pub fn hold_undoings(&self, hold: bool) {
        self.0.undoings_are_held.send_replace(hold);
    }

    /// Waits until an undoing is asked for.
    pub async fn until_undoing(&self) {
        while self.0.undoings.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Refunds of the payments taken so far fail for ever.
    pub fn jam(&self) {
        self.0.stuck.lock().unwrap().extend(self.0.taken.lock().unwrap().keys());
    }

    /// What was taken and not given back, in minor units, by payment.
    pub fn taken(&self) -> BTreeMap<i64, i64> {
        self.0.taken.lock().unwrap().iter().filter(|(_, taken)| **taken != 0).map(|(&payment, &taken)| (payment, taken)).collect()
    }

    /// Waits while answers are kept back.
    pub async fn until_released(&self) {
        // The till outlives whoever holds it.
        let _ = self.0.is_held.subscribe().wait_for(|held| !held).await;
    }

    /// Takes money for a payment as if by a server that then ended.
    pub fn take(&self, payment: i64, minor: i64) {
        self.0.taken.lock().unwrap().insert(payment, minor);
        self.0.charges.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Gateway for Till {
    fn accepts(&self, token: &str) -> bool {
        Sandbox.accepts(token)
    }

    async fn charge(&self, charge: &Charge) -> anyhow::Result<Outcome> {
        let outcome = Sandbox.charge(charge).await?;
        if outcome != Outcome::Declined {
            self.take(charge.payment.0, charge.amount.0);
        }
        self.until_released().await;
        if self.0.loses_answers.load(Ordering::SeqCst) {
            bail!("the line is dead");
        }
        Ok(outcome)
    }

    async fn refund(&self, refund: &Refund) -> anyhow::Result<()> {
        if self.0.refuses_refunds.load(Ordering::SeqCst) || self.0.stuck.lock().unwrap().contains(&refund.payment.0) {
            bail!("the till is locked");
        }
        let is_new = self.0.refunds.lock().unwrap().insert(refund.refund.0);
        // A charge that was undone has nothing left.
        if let Some(taken) = self.0.taken.lock().unwrap().get_mut(&refund.payment.0).filter(|_| is_new) {
            assert!(refund.amount.0 <= *taken, "a refund is of what was taken");
            assert!(refund.reference.starts_with("SBX-"), "the gateway is told its reference");
            *taken -= refund.amount.0;
        }
        if self.0.loses_refunds_answers.load(Ordering::SeqCst) {
            bail!("the line is dead");
        }
        Ok(())
    }

    async fn undo(&self, undo: &CancelCharge) -> anyhow::Result<()> {
        self.0.undoings.fetch_add(1, Ordering::SeqCst);
        let _ = self.0.undoings_are_held.subscribe().wait_for(|held| !held).await;
        if self.0.refuses_refunds.load(Ordering::SeqCst) {
            bail!("the till is locked");
        }
        let taken = self.0.taken.lock().unwrap().remove(&undo.payment.0);
        // Its refund may have come first: then nothing is left.
        assert!(taken.is_none_or(|taken| [0, undo.amount.0].contains(&taken)), "a charge is undone whole");
        Ok(())
    }
}
