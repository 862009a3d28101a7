//! SQL of images.

use boxoffice_http::error::Result;

use super::service::ImageKind;
use crate::kernel::db::Reader;
use crate::kernel::types::id::Id;

/// Database row of an image of an event or advertisement.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct ImageRow {
    /// Identifier of the image; `None` if none was uploaded. A replaced image gets a new identifier.
    pub image_id: Option<Id>,
    /// True if every caller may see the event or advertisement.
    pub is_public: bool,
    /// Title of the event, or name of the advertisement.
    pub title: String,
}

/// Returns the countries of all regions.
pub async fn countries(reader: &mut Reader) -> Result<Vec<String>> {
    reader.query("select distinct country from regions order by country").scalars().await
}

/// Returns the current image of an event or advertisement, if that exists.
pub async fn image(reader: &mut Reader, kind: ImageKind, content: Id) -> Result<Option<ImageRow>> {
    let select = match kind {
        ImageKind::Banner => {
            "select banner_id as image_id, status in ('Listed', 'Cancelled') as is_public, title from events where id = $1"
        }
        ImageKind::Thumbnail => {
            "select thumbnail_id as image_id, status in ('Listed', 'Cancelled') as is_public, title from events where id = $1"
        }
        ImageKind::Artwork => {
            "select a.artwork_id as image_id, a.name as title,
             a.status in ('Listed', 'Cancelled') and e.status in ('Listed', 'Cancelled') as is_public
             from advertisements a join events e on e.id = a.event_id where a.id = $1"
        }
    };
    reader.query(select).bind(content).optional().await
}

/// Returns all images that events and advertisements refer to.
pub async fn images(reader: &mut Reader) -> Result<Vec<(ImageKind, Id)>> {
    let select = "select 'banner', banner_id from events where banner_id is not null
        union all select 'thumbnail', thumbnail_id from events where thumbnail_id is not null
        union all select 'artwork', artwork_id from advertisements where artwork_id is not null";
    let rows: Vec<(String, Id)> = reader.query(select).all().await?;
    let kind = |name: &str| match name {
        "banner" => ImageKind::Banner,
        "thumbnail" => ImageKind::Thumbnail,
        _ => ImageKind::Artwork,
    };
    Ok(rows.into_iter().map(|(name, id)| (kind(&name), id)).collect())
}
