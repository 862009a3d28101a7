//! What the category operations mean. Who may call them, the contract's scopes say.

use std::collections::HashMap;

use super::model::{Category, CategoryCreate, CategoryRow, CategoryUpdate};
use super::store;
use crate::state::App;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::api_types::Uri;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, Result};

/// The categories of these identifiers.
///
/// # Errors
/// When the database fails.
pub async fn views(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Category>> {
    let mut categories: HashMap<Id, Category> = HashMap::new();
    for (id, name, subcategory) in store::of_ids(tx, ids).await? {
        let category = categories.entry(id).or_insert_with(|| view(CategoryRow { id, name }, Vec::new()));
        category.subcategories.extend(subcategory);
    }
    Ok(categories)
}

pub async fn list(app: &App, paging: PageRequest) -> Result<Page<Category>> {
    let mut tx = app.db.read().await?;
    let found = store::list(&mut tx, paging).await?;
    Ok(paging.page(found.total, with_subcategories(&mut tx, found.rows).await?))
}

pub async fn create(app: &App, new: &CategoryCreate) -> Result<Category> {
    transaction!(app.db, |tx| add(app, tx, new).await)
}

async fn add(app: &App, tx: &mut Tx, new: &CategoryCreate) -> Result<Category> {
    let row = CategoryRow { id: app.clock.next_id(), name: new.name.clone() };
    store::insert(tx, &row).await.on_unique("categories_name_key", Code::CategoryTaken)?;
    store::put_subcategories(tx, row.id, &new.subcategories).await?;
    Ok(view(row, new.subcategories.0.clone()))
}

pub async fn get(app: &App, id: Id) -> Result<Category> {
    load(&mut app.db.read().await?, id).await
}

pub async fn update(app: &App, id: Id, change: &CategoryUpdate) -> Result<Category> {
    transaction!(app.db, |tx| apply(tx, id, change).await)
}

async fn apply(tx: &mut Tx, id: Id, change: &CategoryUpdate) -> Result<Category> {
    let found = store::update(tx, id, change.name.clone()).await.on_unique("categories_name_key", Code::CategoryTaken)?;
    if !found {
        return Err(Error::NOT_FOUND);
    }
    if let Some(subcategories) = &change.subcategories {
        store::delete_other_subcategories(tx, id, subcategories).await.on_foreign_key(Code::CategoryInUse)?;
        store::put_subcategories(tx, id, subcategories).await?;
    }
    load(tx, id).await
}

pub async fn delete(app: &App, id: Id) -> Result<()> {
    let deleted = transaction!(app.db, |tx| store::delete(tx, id).await).on_foreign_key(Code::CategoryInUse)?;
    if deleted { Ok(()) } else { Err(Error::NOT_FOUND) }
}

async fn load(tx: &mut Tx, id: Id) -> Result<Category> {
    views(tx, [id]).await?.remove(&id).ok_or(Error::NOT_FOUND)
}

/// The views of these rows, in their order.
async fn with_subcategories(tx: &mut Tx, rows: Vec<CategoryRow>) -> Result<Vec<Category>> {
    let mut names: HashMap<Id, Vec<String>> = HashMap::new();
    for row in store::subcategories(tx, rows.iter().map(|row| row.id)).await? {
        names.entry(row.category_id).or_default().push(row.name);
    }
    let views = rows.into_iter().map(|row| {
        let subcategories = names.remove(&row.id).unwrap_or_default();
        view(row, subcategories)
    });
    Ok(views.collect())
}

fn view(row: CategoryRow, subcategories: Vec<String>) -> Category {
    Category { uri: Uri(format!("/categories/{}", row.id)), name: row.name, subcategories }
}
