//! Conflicts: tickets that a gate without a connection admitted although another gate had admitted them.
//!
//! Each gate lists the conflicts of its device. A conflict is recorded once, however often its scan is uploaded, and its entry never
//! changes. So a gate that has lost a response asks again, and recognizes the conflicts that it has shown already.

use boxoffice_http::error::Result;

use super::model::{AdmissionConflict, ConflictFilter, ConflictRow, OfflineScan};
use super::refused_ticket::EarlierAdmission;
use super::{model, offline_store};
use crate::features::catalog::{events, sections, tokens};
use crate::features::sales::tickets::Serial;
use crate::kernel::auth::Caller;
use crate::kernel::types::api_types::{NullableField, OffsetSeconds};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::Ctx;

pub async fn list(ctx: &Ctx, caller: &Caller, event: Id, filter: &ConflictFilter) -> Result<Page<AdmissionConflict>> {
    let mut reader = ctx.unit.read().await?;
    let event = events::load(&mut reader, event).await?;
    let scope = tokens::authorize(&mut reader, caller, &event).await?;
    let page = offline_store::list_conflicts(&mut reader, event.id, scope, filter, ctx.app.clock.now()).await?;
    Ok(page.map(|row| view(&row)))
}

/// Returns a conflict as a response.
pub fn view(row: &ConflictRow) -> AdmissionConflict {
    let token = |token: Option<Id>| token.map(|token| tokens::uri(row.event_id, token));
    AdmissionConflict {
        ticket: Serial(row.serial.clone()),
        section: sections::uri(row.event_id, row.section_id),
        recorded: OffsetSeconds::from(row.recorded),
        admission: EarlierAdmission {
            uri: model::uri(row.event_id, row.admission_id).0,
            admitted: row.admitted.format_rfc3339(),
            redeemer: row.admission_redeemer.clone(),
            device: row.admission_device.clone(),
            token: NullableField(token(row.admission_token_id).map(|uri| uri.0)),
            token_name: row.admission_token_name.clone().unwrap_or_default(),
        },
        scan: OfflineScan {
            scanned: OffsetSeconds::from(row.scanned),
            redeemer: row.redeemer.clone(),
            device: row.device.clone(),
            token: NullableField(token(row.token_id)),
        },
    }
}
