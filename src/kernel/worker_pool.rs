//! Threads for work that would block other requests, such as hashing passwords, decoding images and drawing tickets.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use boxoffice_http::error::{Code, Error, Result};
use boxoffice_http::rate_limit::RateLimitStatus;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::types::id::Id;

/// Runs work on a bounded number of threads, for a bounded number of requests.
#[derive(Debug, Clone)]
pub struct WorkerPool {
    max_running: usize,
    max_capacity: usize,
    running: Arc<Semaphore>,
    /// One permit for each running and each waiting request.
    capacity: Arc<Semaphore>,
    rejection: &'static str,
}

/// The requests in a [`WorkerPool`] at the moment.
#[derive(Debug, PartialEq, Eq)]
pub struct WorkerPoolStatus {
    /// Requests whose work runs. Those that were cancelled meanwhile are among them.
    pub running: usize,
    /// Requests that wait.
    pub waiting: usize,
}

/// The place of one request in a [`WorkerPool`] until dropped.
#[derive(Debug)]
pub struct WorkerSlot<'a> {
    pool: &'a WorkerPool,
    _permit: SemaphorePermit<'a>,
}

impl WorkerPool {
    /// Creates a pool for this many requests that run at the same time, and this many that wait. `rejection` is the error text
    /// for further ones.
    pub fn new(running: usize, waiting: usize, rejection: &'static str) -> Self {
        let (max_running, max_capacity) = (running, running + waiting);
        let (running, capacity) = (Arc::new(Semaphore::new(max_running)), Arc::new(Semaphore::new(max_capacity)));
        Self { max_running, max_capacity, running, capacity, rejection }
    }

    /// Returns the numbers of requests.
    pub fn status(&self) -> WorkerPoolStatus {
        let running = self.max_running - self.running.available_permits();
        let all = self.max_capacity - self.capacity.available_permits();
        // A cancelled request has given up its place, but may still run.
        WorkerPoolStatus { running, waiting: all.saturating_sub(running) }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`Code::SERVER_UNAVAILABLE`] if too many requests are waiting.
    pub fn enter(&self) -> Result<WorkerSlot<'_>> {
        let permit = self.capacity.try_acquire().map_err(|_| Code::SERVER_UNAVAILABLE.with_message(self.rejection))?;
        Ok(WorkerSlot { pool: self, _permit: permit })
    }
}

/// Bounds the requests of each user in a [`WorkerPool`], so that none of them can fill it.
#[derive(Debug)]
pub struct UserLimits<U> {
    /// The name of the limits in the `RateLimit-Policy` header.
    name: &'static str,
    /// Number of running and waiting requests. Contains only users with at least one.
    in_progress: Mutex<HashMap<U, usize>>,
}

/// The share of one request of a user until dropped.
#[derive(Debug)]
pub struct UserShare<'a, U: Copy + Eq + Hash> {
    limits: &'a UserLimits<U>,
    user: U,
}

impl<U: Copy + Eq + Hash> UserLimits<U> {
    /// Creates limits with this name.
    pub fn new(name: &'static str) -> Self {
        Self { name, in_progress: Mutex::default() }
    }

    /// Takes a share for a request of this user, who may have `limit` of them.
    ///
    /// # Errors
    /// [`Error::TooMany`] if the user has as many already.
    pub fn take(&self, user: U, limit: usize) -> Result<UserShare<'_, U>> {
        let mut in_progress = self.in_progress.lock();
        let count = in_progress.get(&user).copied().unwrap_or_default();
        if count >= limit {
            let second = Duration::from_secs(1);
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            return Err(Error::TooMany(Box::new(RateLimitStatus::exceeded(self.name, limit, second, second))));
        }
        in_progress.insert(user, count + 1);
        Ok(UserShare { limits: self, user })
    }
}

impl<U: Copy + Eq + Hash> Drop for UserShare<'_, U> {
    fn drop(&mut self) {
        let mut in_progress = self.limits.in_progress.lock();
        match in_progress.get_mut(&self.user) {
            Some(count @ 2..) => *count -= 1,
            _ => drop(in_progress.remove(&self.user)),
        }
    }
}

impl WorkerSlot<'_> {
    /// Runs `work` on a thread of its own and returns its result.
    ///
    /// # Errors
    /// Returns an error if it panics.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let permit = Arc::clone(&self.pool.running).acquire_owned().await.map_err(|error| Error::Internal(error.into()))?;
        let work = move || {
            // Released by the thread, which continues after the request was cancelled.
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.into()))
    }
}

/// A [`WorkerPool`] of which each account may use only a part.
#[derive(Debug)]
pub struct AccountWorkerPool {
    workers: WorkerPool,
    accounts: UserLimits<Id>,
    max_per_account: usize,
}

impl AccountWorkerPool {
    /// Creates limits for a pool. `name` is that of the limits in the `RateLimit-Policy` header, `max_per_account` the number of running
    /// and waiting requests of an account.
    pub fn new(workers: WorkerPool, name: &'static str, max_per_account: usize) -> Self {
        Self { workers, accounts: UserLimits::new(name), max_per_account }
    }

    /// Runs `work` for a request of an account. Programs of the operator have none.
    ///
    /// # Errors
    /// [`Error::TooMany`] if too many requests of this account are waiting, [`Code::SERVER_UNAVAILABLE`] if too many of all accounts
    /// are.
    pub async fn run<T: Send + 'static>(&self, account: Option<Id>, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let _share = account.map(|account| self.accounts.take(account, self.max_per_account)).transpose()?;
        self.workers.enter()?.run(work).await
    }
}
