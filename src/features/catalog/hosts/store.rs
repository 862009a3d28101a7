//! SQL of hosts.

use std::collections::{BTreeSet, HashSet};

use boxoffice_http::error::Result;

use super::model::{AdministratorRow, HostCreate, HostDetails, HostFilter, HostRow, HostUpdate};
use crate::kernel::db::{Reader, SqlQuery, Tx, define_sql};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `HostRow`.
define_sql!(
    columns,
    "id, name, contact, email, description, phone, website, country, first_address_line, second_address_line, \
     city, state, business_no"
);

/// Returns a page of hosts that have not been removed, the oldest first.
pub async fn list(reader: &mut Reader, filter: &HostFilter) -> Result<PagedRows<HostRow>> {
    const ADMINISTERED: &str = "exists (select 1 from host_administrators m join accounts a on a.id = m.account_id
        where m.host_id = h.id and a.number = ?)";
    const BYTES: &str = "(8000 + octet_length(h.name) + octet_length(h.description))";
    let account = filter.account.as_ref().map(|number| number.0.clone());
    reader
        .list(columns!(), "from hosts h where h.removed = false")
        .and_where(ADMINISTERED, account)
        .sized_page("h.id", BYTES, filter.paging)
        .await
}

/// Returns a host, unless it has been removed.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<HostRow>> {
    reader.query(concat!("select ", columns!(), " from hosts where id = $1 and removed = false")).bind(id).optional().await
}

/// Returns whether the host exists, removed or not.
pub async fn exists(reader: &mut Reader, id: Id) -> Result<bool> {
    reader.query("select exists (select 1 from hosts where id = $1)").bind(id).scalar().await
}

/// Locks a host and returns whether it was removed; `None` if it never existed. The lock is shared: other transactions may hold
/// it too, and a removal waits for all of them.
pub async fn lock_shared(tx: &mut Tx, id: Id) -> Result<Option<bool>> {
    tx.select("removed from hosts where true").and_where("id = ?", Some(id)).push_lock(" for share").optional_scalar().await
}

/// Locks a host exclusively until this transaction ends. Returns false if the host was removed or doesn't exist.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<bool> {
    let host = tx.select("id from hosts where removed = false").and_where("id = ?", Some(id));
    host.for_update().exists().await
}

/// Marks a [locked](lock) host as removed.
pub async fn remove(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("update hosts set removed = true where id = $1").bind(id).execute().await
}

/// Returns a page of a host's administrators, the oldest account first.
pub async fn administrators(reader: &mut Reader, host: Id, paging: PageRequest) -> Result<PagedRows<AdministratorRow>> {
    reader
        .list("m.account_id", "from host_administrators m where true")
        .and_where("m.host_id = ?", Some(host))
        .page("m.account_id", paging)
        .await
}

/// Returns the accounts of a host's administrators, at most 100 of them, the oldest first.
pub async fn administrator_ids(reader: &mut Reader, host: Id) -> Result<Vec<Id>> {
    let select = "select account_id from host_administrators where host_id = $1 order by account_id limit 100";
    reader.query(select).bind(host).scalars().await
}

/// Returns the number of hosts that an account administers and that have not been removed.
pub async fn count_administered(reader: &mut Reader, account: Id) -> Result<i64> {
    let count = "select count(*) from host_administrators m join hosts h on h.id = m.host_id
        where m.account_id = $1 and h.removed = false";
    reader.query(count).bind(account).scalar().await
}

/// Returns whether a host has an administrator who can act for it: whose account is active, and not a guest, whose password is unknown.
pub async fn has_active_administrator(reader: &mut Reader, host: Id) -> Result<bool> {
    let administrators = "select exists (select 1 from host_administrators m join accounts a on a.id = m.account_id
         where m.host_id = $1 and a.activated and not a.guest)";
    reader.query(administrators).bind(host).scalar().await
}

pub async fn is_administrator(reader: &mut Reader, host: Id, account: Id) -> Result<bool> {
    reader
        .query("select exists (select 1 from host_administrators where host_id = $1 and account_id = $2)")
        .bind(host)
        .bind(account)
        .scalar()
        .await
}

/// Returns which of these accounts administer which of these hosts, as pairs of account and host.
pub async fn administrators_among(reader: &mut Reader, accounts: BTreeSet<Id>, hosts: BTreeSet<Id>) -> Result<HashSet<(Id, Id)>> {
    let pairs = reader.select("account_id, host_id from host_administrators where true");
    let pairs: Vec<(Id, Id)> = pairs.and_in("host_id", hosts).and_in("account_id", accounts).all().await?;
    Ok(pairs.into_iter().collect())
}

/// Returns whether an account administers a host; `None` if the host was removed or never existed.
pub async fn is_administered(reader: &mut Reader, host: Id, account: Option<Id>) -> Result<Option<bool>> {
    let host = reader
        .query(
            "select exists (select 1 from host_administrators m where m.host_id = h.id and m.account_id = $2) as is_administered
             from hosts h where h.id = $1 and h.removed = false",
        )
        .bind(host)
        .bind(account);
    host.optional_scalar().await
}

pub async fn insert(tx: &mut Tx, id: Id, new: &HostCreate) -> Result<HostRow> {
    let insert = tx.query(concat!(
        "insert into hosts (id, name, contact, email, description, phone, website, country, first_address_line,
         second_address_line, city, state, business_no, removed, folded_name)
         values ($1, $2, $3, $4, coalesce($5, ''), coalesce($6, ''), coalesce($7, ''), coalesce($8, ''), coalesce($9, ''),
         coalesce($10, ''), coalesce($11, ''), coalesce($12, ''), coalesce($13, ''), false, $14)
         returning ",
        columns!()
    ));
    let insert = insert.bind(id).bind(new.name.clone()).bind(new.contact.clone()).bind(new.email.clone());
    bind_details(insert, &new.details).bind(fold(&new.name)).one().await
}

/// Adds an administrator to a host. Returns false if the account is one already.
pub async fn insert_administrator(tx: &mut Tx, host: Id, account: Id) -> Result<bool> {
    let insert = "insert into host_administrators (host_id, account_id) values ($1, $2) on conflict do nothing";
    Ok(tx.query(insert).bind(host).bind(account).rows_affected().await? == 1)
}

/// Removes an administrator from a host. Returns whether the account was one.
pub async fn delete_administrator(tx: &mut Tx, host: Id, account: Id) -> Result<bool> {
    let delete = "delete from host_administrators where host_id = $1 and account_id = $2";
    Ok(tx.query(delete).bind(host).bind(account).rows_affected().await? == 1)
}

/// Removes an account that is deleted from the administrators of every host. It needs no lock of the hosts: if another administrator is
/// removed at the same time, the outcome is that of the removal before the deletion, and a deletion may leave a host without any.
pub async fn delete_administrator_everywhere(tx: &mut Tx, account: Id) -> Result<()> {
    tx.query("delete from host_administrators where account_id = $1").bind(account).execute().await
}

/// Updates the fields present in `change` and leaves the others unchanged.
pub async fn update(tx: &mut Tx, id: Id, change: &HostUpdate) -> Result<Option<HostRow>> {
    let update = tx.query(concat!(
        "update hosts set name = coalesce($2, name), contact = coalesce($3, contact), email = coalesce($4, email),
         description = coalesce($5, description), phone = coalesce($6, phone), website = coalesce($7, website),
         country = coalesce($8, country), first_address_line = coalesce($9, first_address_line),
         second_address_line = coalesce($10, second_address_line), city = coalesce($11, city),
         state = coalesce($12, state), business_no = coalesce($13, business_no),
         folded_name = case when name = coalesce($2, name) then folded_name else $14 end
         where id = $1 and removed = false returning ",
        columns!()
    ));
    let update = update.bind(id).bind(change.name.clone()).bind(change.contact.clone()).bind(change.email.clone());
    bind_details(update, &change.details).bind(change.name.as_deref().map(fold)).optional().await
}

/// Binds the details, which are `$5` to `$13` in both statements.
fn bind_details<'a>(statement: SqlQuery<'a>, details: &HostDetails) -> SqlQuery<'a> {
    statement
        .bind(details.description.clone())
        .bind(details.phone.clone())
        .bind(details.website.clone())
        .bind(details.country.clone())
        .bind(details.first_address_line.clone())
        .bind(details.second_address_line.clone())
        .bind(details.city.clone())
        .bind(details.state.clone())
        .bind(details.business_no.clone())
}
