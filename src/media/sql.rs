//! What the database knows of images.

use super::service::ImageKind;
use crate::base::id::Id;
use crate::db::Tx;
use crate::error::Result;

/// Every country that a region lies in.
pub async fn countries(tx: &mut Tx) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = tx.query("select distinct country from regions").all().await?;
    Ok(rows.into_iter().map(|(country,)| country).collect())
}

/// Whether there is such an event and it has such an image.
pub async fn has_image(tx: &mut Tx, kind: ImageKind, event: Id) -> Result<bool> {
    let row: Option<(bool, bool)> = tx.query("select banner, thumbnail from events where id = $1").bind(event).optional().await?;
    Ok(row.is_some_and(|(banner, thumbnail)| match kind {
        ImageKind::Banner => banner,
        ImageKind::Thumbnail => thumbnail,
    }))
}
