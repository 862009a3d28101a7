//! The payment gateway of the tests: the sandbox, with balances that a test can inspect, and responses that it can block or lose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::bail;
use async_trait::async_trait;
use boxoffice::features::sales::payments::{CancelCharge, Charge, ChargeResult, Gateway, Refund, Sandbox};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::mailbox::wait_until;

/// The balance of each payment, and the refunds that were made.
pub type GatewaySnapshot = (BTreeMap<i64, i64>, BTreeSet<i64>);

/// The gateway. Clones share their state.
#[derive(Clone, Default)]
pub struct FakeGateway(Arc<State>);

#[derive(Default)]
struct State {
    /// The amount charged and not refunded, in minor units, by payment.
    balances: Mutex<BTreeMap<i64, i64>>,
    /// The refunds that were made.
    refunds: Mutex<BTreeSet<i64>>,
    /// The number of approved charges.
    charges: AtomicUsize,
    is_blocked: watch::Sender<bool>,
    fails_after_charge: AtomicBool,
    rejects_refunds: AtomicBool,
    /// Payments whose refunds always fail.
    unrefundable: Mutex<BTreeSet<i64>>,
    fails_after_refund: AtomicBool,
    /// The number of requests to cancel a charge.
    cancellations: AtomicUsize,
    cancellations_are_blocked: watch::Sender<bool>,
}

impl FakeGateway {
    /// Returns the sum of all balances.
    pub fn total(&self) -> f64 {
        f64::from(i32::try_from(self.0.balances.lock().values().sum::<i64>()).unwrap()) / 100.0
    }

    /// Copies the balances and refunds.
    pub fn snapshot(&self) -> GatewaySnapshot {
        (self.0.balances.lock().clone(), self.0.refunds.lock().clone())
    }

    /// Restores balances and refunds.
    pub fn restore(&self, (balances, refunds): &GatewaySnapshot) {
        self.0.balances.lock().clone_from(balances);
        self.0.refunds.lock().clone_from(refunds);
    }

    /// Returns the number of approved charges, refunded or not.
    pub fn charge_count(&self) -> usize {
        self.0.charges.load(Ordering::SeqCst)
    }

    /// Delays the responses of charges, after the money was taken, until [`FakeGateway::unblock`] is called.
    pub fn block(&self) {
        self.0.is_blocked.send_replace(true);
    }

    /// Sends the delayed responses.
    pub fn unblock(&self) {
        self.0.is_blocked.send_replace(false);
    }

    /// Waits until this many charges were approved.
    pub async fn wait_for_charges(&self, charges: usize) {
        wait_until(async || self.charge_count() >= charges).await;
    }

    /// Sets whether charges fail after the money was taken.
    pub fn fail_after_charge(&self, fail: bool) {
        self.0.fails_after_charge.store(fail, Ordering::SeqCst);
    }

    /// Sets whether refunds fail after the money was returned.
    pub fn fail_after_refund(&self, fail: bool) {
        self.0.fails_after_refund.store(fail, Ordering::SeqCst);
    }

    /// Sets whether refunds and cancellations fail.
    pub fn reject_refunds(&self, reject: bool) {
        self.0.rejects_refunds.store(reject, Ordering::SeqCst);
    }

    /// Blocks cancellations before they return money, or unblocks them.
    pub fn block_cancellations(&self, block: bool) {
        self.0.cancellations_are_blocked.send_replace(block);
    }

    /// Waits until a cancellation was requested.
    pub async fn wait_for_cancellation(&self) {
        wait_until(async || self.0.cancellations.load(Ordering::SeqCst) > 0).await;
    }

    /// Makes all refunds of the payments so far fail.
    pub fn fail_all_refunds(&self) {
        self.0.unrefundable.lock().extend(self.0.balances.lock().keys());
    }

    /// Returns the balances that are not zero, in minor units, by payment.
    pub fn balances(&self) -> BTreeMap<i64, i64> {
        let balances = self.0.balances.lock();
        balances.iter().filter(|(_, balance)| **balance != 0).map(|(&payment, &balance)| (payment, balance)).collect()
    }

    /// Waits while responses are blocked.
    pub async fn wait_while_blocked(&self) {
        // The sender lives as long as `self`, so this can't fail.
        let _ = self.0.is_blocked.subscribe().wait_for(|blocked| !blocked).await;
    }

    /// Records a charge as if it came from a server that then crashed.
    pub fn record_charge(&self, payment: i64, minor: i64) {
        self.0.balances.lock().insert(payment, minor);
        self.0.charges.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Gateway for FakeGateway {
    fn accepts(&self, token: &str) -> bool {
        Sandbox.accepts(token)
    }

    async fn charge(&self, charge: &Charge) -> anyhow::Result<ChargeResult> {
        let outcome = Sandbox.charge(charge).await?;
        if outcome != ChargeResult::Declined {
            self.record_charge(charge.payment.0, charge.amount.0);
        }
        self.wait_while_blocked().await;
        if self.0.fails_after_charge.load(Ordering::SeqCst) {
            bail!("the connection was lost after the charge");
        }
        Ok(outcome)
    }

    async fn refund(&self, refund: &Refund) -> anyhow::Result<()> {
        if self.0.rejects_refunds.load(Ordering::SeqCst) || self.0.unrefundable.lock().contains(&refund.payment.0) {
            bail!("the gateway rejects refunds");
        }
        let is_new = self.0.refunds.lock().insert(refund.refund.0);
        // A charge that was cancelled has no balance.
        if let Some(balance) = self.0.balances.lock().get_mut(&refund.payment.0).filter(|_| is_new) {
            assert!(refund.amount.0 <= *balance, "a refund must not exceed the balance");
            assert!(refund.reference.starts_with("SBX-"), "a refund must carry the gateway's reference");
            *balance -= refund.amount.0;
        }
        if self.0.fails_after_refund.load(Ordering::SeqCst) {
            bail!("the connection was lost after the refund");
        }
        Ok(())
    }

    async fn cancel_charge(&self, cancellation: &CancelCharge) -> anyhow::Result<()> {
        self.0.cancellations.fetch_add(1, Ordering::SeqCst);
        let _ = self.0.cancellations_are_blocked.subscribe().wait_for(|blocked| !blocked).await;
        if self.0.rejects_refunds.load(Ordering::SeqCst) {
            bail!("the gateway rejects refunds");
        }
        let balance = self.0.balances.lock().remove(&cancellation.payment.0);
        // The charge may have been refunded already: then its balance is 0.
        assert!(balance.is_none_or(|balance| [0, cancellation.amount.0].contains(&balance)), "a charge is cancelled in full");
        Ok(())
    }
}
