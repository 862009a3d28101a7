//! Reading admissions. See [`super::redeem`] for creating them.

use std::collections::{BTreeSet, HashMap};

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};

use super::model::{Admission, AdmissionFilter, AdmissionRow, uri};
use super::store;
use crate::features::catalog::events;
use crate::features::catalog::sections::{self, Section};
use crate::features::catalog::tokens;
use crate::features::identity::accounts::{self, AccountRow};
use crate::features::sales::tickets::Serial;
use crate::kernel::auth::Caller;
use crate::kernel::db::Reader;
use crate::kernel::types::api_types::OffsetSeconds;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::EmbeddedById;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::Ctx;

pub async fn list(ctx: &Ctx, caller: &Caller, event: Id, filter: &AdmissionFilter) -> Result<Page<Admission>> {
    let mut reader = ctx.unit.read().await?;
    let event = events::load(&mut reader, event).await?;
    let scope = tokens::authorize(&mut reader, caller, &event).await?;
    let section = match &filter.section {
        Some(text) => {
            let section = sections::find_in_event(&mut reader, event.id, text).await?;
            Some(section.ok_or_else(|| Error::invalid("section", "names no section of this event"))?)
        }
        None => None,
    };
    let page = store::list(&mut reader, event.id, scope, filter, section).await?;
    scope.require_token(&mut reader).await?;
    let entries = views(&mut reader, caller, page.rows, ctx.app.clock.now()).await?;
    Ok(filter.paging.page(page.total, entries))
}

pub async fn get(ctx: &Ctx, caller: &Caller, event: Id, admission: Id) -> Result<Admission> {
    let mut reader = ctx.unit.read().await?;
    let event = events::load(&mut reader, event).await?;
    let row = store::find(&mut reader, event.id, admission).await?.ok_or(Error::NOT_FOUND)?;
    let scope = tokens::authorize(&mut reader, caller, &event).await?;
    scope.require(&mut reader, row.section_id).await?;
    let mut views = views(&mut reader, caller, vec![row], ctx.app.clock.now()).await?;
    views.pop().ok_or(Error::NOT_FOUND)
}

async fn views(reader: &mut Reader, caller: &Caller, rows: Vec<AdmissionRow>, now: Timestamp) -> Result<Vec<Admission>> {
    let relations = AdmissionRelations::load(reader, &rows, now).await?;
    rows.into_iter().map(|row| relations.view(caller, row)).collect()
}

/// The sections and patrons of admissions.
pub struct AdmissionRelations {
    sections: EmbeddedById<Section>,
    patrons: HashMap<Id, AccountRow>,
}

impl AdmissionRelations {
    /// Loads the sections and patrons of these admissions, each once.
    pub async fn load<'a>(reader: &mut Reader, rows: impl IntoIterator<Item = &'a AdmissionRow>, now: Timestamp) -> Result<Self> {
        let (sections, patrons): (BTreeSet<Id>, BTreeSet<Id>) =
            rows.into_iter().map(|row| (row.section_id, row.patron_id)).unzip();
        let patrons = accounts::find_all(reader, patrons).await?.into_iter().map(|patron| (patron.id, patron)).collect();
        Ok(Self { sections: sections::find_embedded(reader, sections, now).await?, patrons })
    }

    /// Returns one of these admissions as a response to this caller.
    pub fn view(&self, caller: &Caller, row: AdmissionRow) -> Result<Admission> {
        let related = self.sections.get(&row.section_id).zip(self.patrons.get(&row.patron_id));
        let (section, patron) = related.ok_or_else(|| anyhow!("admission {} lacks its section or patron", row.id))?;
        Ok(Admission {
            uri: uri(row.event_id, row.id),
            redeemer: row.redeemer,
            device: row.device,
            ticket: Serial(row.serial),
            patron: accounts::view_for(caller, patron.clone()),
            section: section.clone(),
            admitted: OffsetSeconds::from(row.admitted),
        })
    }
}
