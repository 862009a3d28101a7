//! What the database knows of images.

use super::service::ImageKind;
use crate::kernel::types::id::Id;
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;

/// Every country that a region lies in.
pub async fn countries(tx: &mut Tx) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = tx.query("select distinct country from regions").all().await?;
    Ok(rows.into_iter().map(|(country,)| country).collect())
}

/// The identifier under which this image of an event or advertisement is kept, where there is one, and whether everyone may see
/// it. It changes with the image.
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
