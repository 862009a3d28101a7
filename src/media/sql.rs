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

/// The identifier under which this image of an event or advertisement is kept, where there is one. It changes with the image.
pub async fn image(tx: &mut Tx, kind: ImageKind, content: Id) -> Result<Option<Id>> {
    let select = match kind {
        ImageKind::Banner => "select banner_id from events where id = $1",
        ImageKind::Thumbnail => "select thumbnail_id from events where id = $1",
        ImageKind::Artwork => "select artwork_id from advertisements where id = $1",
    };
    let row: Option<(Option<Id>,)> = tx.query(select).bind(content).optional().await?;
    Ok(row.and_then(|(id,)| id))
}
