//! What a lookup means.

use super::model::{Lookup, LookupCreate};
use crate::features::identity::accounts;
use crate::state::App;
use boxoffice_http::error::Result;

pub async fn look_up(app: &App, asked: LookupCreate) -> Result<Lookup> {
    let mut tx = app.db.read().await?;
    let found = accounts::exists(&mut tx, &asked.identification, asked.role.map(Into::into)).await?;
    Ok(Lookup { identification: asked.identification, role: asked.role, found })
}
