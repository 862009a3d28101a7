//! Who takes the money: any payment gateway, and the sandbox that is built in.

use std::time::Duration;

use async_trait::async_trait;

use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// How long the gateway is waited for. After that it counts as failed.
pub const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// Money to take.
pub struct Charge {
    /// The payment, which the gateway keeps with the charge: an [`Undo`] names no more than this.
    pub payment: Id,
    /// The order that is paid.
    pub order: Id,
    /// How much.
    pub amount: Money,
    /// The platform's currency, as an ISO 4217 code.
    pub currency: String,
    /// The gateway's token for the card. Never logged.
    pub token: String,
}

/// Money to give back of what a charge took.
#[derive(Debug)]
pub struct Refund {
    /// The refund itself, by which the gateway knows it again: a charge may be given back in several parts, alike even.
    pub refund: Id,
    /// The payment whose charge it is of.
    pub payment: Id,
    /// How much. The refunds of a charge never come to more than the charge.
    pub amount: Money,
    /// The gateway's reference of the charge.
    pub reference: String,
}

/// A charge of which nobody knows what came.
#[derive(Debug)]
pub struct CancelCharge {
    /// The payment whose charge it was.
    pub payment: Id,
    /// How much was to be taken.
    pub amount: Money,
}

/// The gateway's answer to a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The money was taken.
    Approved {
        /// The gateway's reference.
        reference: String,
    },
    /// It was not.
    Declined,
}

/// A payment gateway.
#[async_trait]
pub trait Gateway: Send + Sync {
    /// Whether this can be one of the gateway's tokens. Asked before anything is done; a token that turns out to be of no card
    /// is a charge [`Outcome::Declined`].
    fn accepts(&self, token: &str) -> bool;

    /// Takes money.
    ///
    /// # Errors
    /// When the gateway fails. Whether money was taken is then unknown, and the charge will be undone.
    async fn charge(&self, charge: &Charge) -> anyhow::Result<Outcome>;

    /// Gives back a part of what a charge took, or all of it. Succeeds, and gives nothing more, when it has done this refund
    /// before, and when the charge was undone: this is asked again until it succeeds, by several servers perhaps.
    ///
    /// # Errors
    /// When the gateway fails.
    async fn refund(&self, refund: &Refund) -> anyhow::Result<()>;

    /// Gives back whatever was taken by the charge of a payment, and takes none that arrives after this. Succeeds when nothing
    /// was taken, and when it was given back before: this too is asked again until it succeeds.
    ///
    /// # Errors
    /// When the gateway fails.
    async fn undo(&self, undo: &CancelCharge) -> anyhow::Result<()>;
}

/// The built-in gateway for trying things out: its tokens say what comes of them, and no money moves.
#[derive(Debug, Clone, Copy)]
pub struct Sandbox;

impl Sandbox {
    const APPROVE: &str = "tok_approve";
    const DECLINE: &str = "tok_decline";
    const ERROR: &str = "tok_error";
}

#[async_trait]
impl Gateway for Sandbox {
    fn accepts(&self, token: &str) -> bool {
        [Self::APPROVE, Self::DECLINE, Self::ERROR].contains(&token)
    }

    async fn charge(&self, charge: &Charge) -> anyhow::Result<Outcome> {
        match charge.token.as_str() {
            Self::APPROVE => Ok(Outcome::Approved { reference: format!("SBX-{:08}", charge.payment.0 % 100_000_000) }),
            Self::DECLINE => Ok(Outcome::Declined),
            _ => anyhow::bail!("the sandbox was told to fail"),
        }
    }

    async fn refund(&self, _: &Refund) -> anyhow::Result<()> {
        Ok(())
    }

    async fn undo(&self, _: &CancelCharge) -> anyhow::Result<()> {
        Ok(())
    }
}
