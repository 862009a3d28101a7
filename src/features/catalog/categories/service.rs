//! Operations on categories. Permissions are checked by the contract's scopes (`x-scopes`).

use std::collections::{HashMap, HashSet};

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors, reject_if};
use boxoffice_openapi::is_blank_text;

use super::model::{Category, CategoryCreate, CategoryRow, CategoryUpdate, Subcategories};
use super::store;
use crate::features::codes;
use crate::kernel::db::{Reader, Tx, ViolationExt, transaction};
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Returns the categories with these identifiers.
pub async fn views(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Category>> {
    let mut categories: HashMap<Id, Category> = HashMap::new();
    for (id, name, subcategory) in store::find_all(reader, ids).await? {
        let category = categories.entry(id).or_insert_with(|| view(CategoryRow { id, name }, Vec::new()));
        category.subcategories.extend(subcategory);
    }
    Ok(categories)
}

pub async fn list(ctx: &Ctx, paging: PageRequest) -> Result<Page<Category>> {
    let mut reader = ctx.unit.read().await?;
    let page = store::list(&mut reader, paging).await?;
    Ok(paging.page(page.total, with_subcategories(&mut reader, page.rows).await?))
}

pub async fn create(ctx: &Ctx, new: &CategoryCreate) -> Result<Category> {
    transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, new).await)
}

async fn create_in_tx(app: &App, tx: &mut Tx, new: &CategoryCreate) -> Result<Category> {
    check_names(&new.subcategories)?;
    let row = CategoryRow { id: app.clock.next_id(), name: new.name.clone() };
    store::insert(tx, &row).await.on_taken("categories", "name", codes::CATEGORY_TAKEN)?;
    store::put_subcategories(tx, row.id, &new.subcategories).await?;
    Ok(view(row, new.subcategories.0.clone()))
}

pub async fn get(ctx: &Ctx, id: Id) -> Result<Category> {
    load(&mut ctx.unit.read().await?, id).await
}

pub async fn update(ctx: &Ctx, id: Id, change: &CategoryUpdate) -> Result<Category> {
    transaction!(ctx.unit, |tx| update_in_tx(tx, id, change).await)
}

async fn update_in_tx(tx: &mut Tx, id: Id, change: &CategoryUpdate) -> Result<Category> {
    // A taken name is reported after an invalid argument.
    if let Some(subcategories) = &change.subcategories
        && store::exists(tx, id).await?
    {
        check_names(subcategories)?;
    }
    let exists = store::update(tx, id, change.name.clone()).await.on_taken("categories", "name", codes::CATEGORY_TAKEN)?;
    reject_if(!exists, Error::NOT_FOUND)?;
    if let Some(subcategories) = &change.subcategories {
        store::delete_other_subcategories(tx, id, subcategories).await.on_foreign_key(codes::CATEGORY_IN_USE)?;
        store::put_subcategories(tx, id, subcategories).await?;
    }
    load(tx, id).await
}

pub async fn delete(ctx: &Ctx, id: Id) -> Result<()> {
    let deleted = transaction!(ctx.unit, |tx| store::delete(tx, id).await).on_foreign_key(codes::CATEGORY_IN_USE)?;
    if deleted { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Rejects names that are blank, or equal but for case, white space and representation.
fn check_names(subcategories: &Subcategories) -> Result<()> {
    let mut seen = HashSet::new();
    let problem = subcategories.0.iter().enumerate().find_map(|(index, name)| match name {
        name if is_blank_text(name) => Some(format!("is blank (at {index})")),
        name if !seen.insert(fold(name)) => Some(format!("names a subcategory twice (at {index})")),
        _ => None,
    });
    ensure_no_field_errors(problem.map(|problem| FieldError::invalid("subcategories", problem)).into_iter().collect())
}

async fn load(reader: &mut Reader, id: Id) -> Result<Category> {
    views(reader, [id]).await?.remove(&id).ok_or(Error::NOT_FOUND)
}

/// Returns the representation of these rows, in their order.
async fn with_subcategories(reader: &mut Reader, rows: Vec<CategoryRow>) -> Result<Vec<Category>> {
    let mut names: HashMap<Id, Vec<String>> = HashMap::new();
    for row in store::subcategories(reader, rows.iter().map(|row| row.id)).await? {
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
