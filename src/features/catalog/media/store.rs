//! SQL of images.

use boxoffice_http::error::Result;

use super::service::ImageKind;
use crate::kernel::db::Tx;
use crate::kernel::types::id::Id;

/// Returns the countries of all regions.
pub async fn countries(tx: &mut Tx) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = tx.query("select distinct country from regions").all().await?;
    Ok(rows.into_iter().map(|(country,)| country).collect())
}

/// Returns the current image of an event or advertisement, if it has one, and whether the image is public. A replaced image
/// gets a new identifier.
pub async fn image(tx: &mut Tx, kind: ImageKind, content: Id) -> Result<Option<(Id, bool)>> {
    let select = match kind {
        ImageKind::Banner => {
            "select banner_id, status in ('Listed', 'Cancelled') from events where id = $1 and banner_id is not null"
        }
        ImageKind::Thumbnail => {
            "select thumbnail_id, status in ('Listed', 'Cancelled') from events where id = $1 and thumbnail_id is not null"
        }
        ImageKind::Artwork => {
            "select a.artwork_id, a.status in ('Listed', 'Cancelled') and e.status in ('Listed', 'Cancelled')
             from advertisements a join events e on e.id = a.event_id where a.id = $1"
        }
    };
    tx.query(select).bind(content).optional().await
}
