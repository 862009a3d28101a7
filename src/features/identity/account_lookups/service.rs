//! Looks up accounts by username or e-mail address.

use boxoffice_http::error::Result;

use super::model::{Lookup, LookupCreate};
use crate::features::identity::accounts;
use crate::kernel::types::api_types::NullableField;
use crate::state::Ctx;

pub async fn look_up(ctx: &Ctx, lookup: LookupCreate) -> Result<Lookup> {
    let mut reader = ctx.unit.read().await?;
    let found = accounts::exists(&mut reader, &lookup.identification, lookup.role).await?;
    Ok(Lookup { identification: lookup.identification, role: NullableField(lookup.role), found })
}
