//! SQL of categories and their subcategories.

use boxoffice_http::error::Result;

use super::model::{CategoryRow, Subcategories, SubcategoryRow};
use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

/// Returns a page of categories, the oldest first.
pub async fn list(reader: &mut Reader, paging: PageRequest) -> Result<PagedRows<CategoryRow>> {
    const BYTES: &str = "(400 + octet_length(categories.name)
        + coalesce((select sum(4 + octet_length(s.name)) from subcategories s where s.category_id = categories.id), 0))";
    reader.list("id, name", "from categories").sized_page("id", BYTES, paging).await
}

/// Returns these categories, each once per subcategory, in the subcategories' order. A category without subcategories occurs once
/// with `None`.
pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<(Id, String, Option<String>)>> {
    let both = "c.id, c.name, s.name from categories c left join subcategories s on s.category_id = c.id where true";
    reader.select(both).and_in("c.id", ids).push(" order by c.id, s.position").all().await
}

/// Returns whether the category has this subcategory, which can't be removed before the transaction ends.
pub async fn lock_subcategory(tx: &mut Tx, category: Id, name: &str) -> Result<bool> {
    let subcategory = tx.select("category_id from subcategories where true").and_where("category_id = ?", Some(category));
    subcategory.and_where("name = ?", Some(name.to_owned())).push_lock(" for key share").exists().await
}

/// Returns the names, as events have them, of the subcategories of this category, or of all categories, that are equal to `name` when
/// folded.
pub async fn find_subcategories(reader: &mut Reader, category: Option<Id>, name: &str) -> Result<Vec<String>> {
    let names = reader.select("distinct name from subcategories where true").and_where("category_id = ?", category);
    let (mut names, folded): (Vec<String>, String) = (names.scalars().await?, fold(name));
    names.retain(|name| fold(name) == folded);
    Ok(names)
}

/// Returns whether the category exists.
pub async fn exists(reader: &mut Reader, id: Id) -> Result<bool> {
    reader.query("select exists (select 1 from categories where id = $1)").bind(id).scalar().await
}

/// Returns the subcategories of these categories, each category's in their order.
pub async fn subcategories(reader: &mut Reader, categories: impl IntoIterator<Item = Id>) -> Result<Vec<SubcategoryRow>> {
    let select = reader.select("category_id, name from subcategories where true").and_in("category_id", categories);
    select.push(" order by category_id, position").all().await
}

pub async fn insert(tx: &mut Tx, row: &CategoryRow) -> Result<()> {
    let insert = tx.query("insert into categories (id, name, folded_name) values ($1, $2, $3)");
    insert.bind(row.id).bind(row.name.clone()).bind(fold(&row.name)).execute().await
}

/// Updates the name, if there is a new one. Returns whether the category exists.
pub async fn update(tx: &mut Tx, id: Id, name: Option<String>) -> Result<bool> {
    let update = tx.query(
        "update categories set name = coalesce($2, name),
         folded_name = case when name = coalesce($2, name) then folded_name else $3 end where id = $1",
    );
    let folded = name.as_deref().map(fold);
    Ok(update.bind(id).bind(name).bind(folded).rows_affected().await? == 1)
}

/// Adds these subcategories. Existing ones get their new position.
pub async fn put_subcategories(tx: &mut Tx, category: Id, subcategories: &Subcategories) -> Result<()> {
    // `where true` prevents SQLite from parsing `on conflict` as the condition of a join.
    let sql = if tx.is_postgres() {
        "insert into subcategories (category_id, name, position)
         select $1, value, ordinality from json_array_elements_text(cast($2 as json)) with ordinality where true
         on conflict (category_id, name) do update set position = excluded.position"
    } else {
        "insert into subcategories (category_id, name, position)
         select $1, value, key from json_each($2) where true
         on conflict (category_id, name) do update set position = excluded.position"
    };
    tx.query(sql).bind(category).bind(subcategories.json()).execute().await
}

/// Deletes the subcategories that are not in `keep`.
pub async fn delete_other_subcategories(tx: &mut Tx, category: Id, keep: &Subcategories) -> Result<()> {
    let sql = if tx.is_postgres() {
        "delete from subcategories where category_id = $1
         and name not in (select json_array_elements_text(cast($2 as json)))"
    } else {
        "delete from subcategories where category_id = $1 and name not in (select value from json_each($2))"
    };
    tx.query(sql).bind(category).bind(keep.json()).execute().await
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from categories where id = $1").bind(id).rows_affected().await? == 1)
}
