//! The context of a request or of a job's run: the application's state and the unit of work.

use std::sync::Arc;

use super::http::AppState;
use super::unit_of_work::UnitOfWork;

/// Passed to every service function. `A` is the application's state.
pub struct Context<A> {
    /// The application's state, shared by all requests.
    pub app: Arc<A>,
    /// Reads, writes and commits of this request.
    pub unit: Arc<UnitOfWork>,
}

impl<A: AppState> Context<A> {
    /// A context outside any request: each transaction commits at its end.
    pub fn immediate(app: Arc<A>) -> Self {
        let unit = UnitOfWork::immediate(app.kernel().db.clone());
        Self { app, unit }
    }

    /// The context of work that runs after the request's commit.
    pub fn background(&self) -> Self {
        Self::immediate(Arc::clone(&self.app))
    }
}

impl<A> Clone for Context<A> {
    fn clone(&self) -> Self {
        Self { app: Arc::clone(&self.app), unit: Arc::clone(&self.unit) }
    }
}
