//! Runs a sale on a running server, from sign-up to admission, and prints each step.
//!
//! ```sh
//! cargo run --release -- serve        # in another terminal; its first start creates the administrator's key
//! cargo run -p boxoffice-client --example first_sale -- http://127.0.0.1:8080 ADMINISTRATOR_KEY
//! ```

#![expect(clippy::print_stdout, reason = "the example prints each step")]

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use boxoffice_client::{Client, types};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().context("usage: first_sale ADDRESS ADMINISTRATOR_KEY")?;
    let key = arguments.next().context("usage: first_sale ADDRESS ADMINISTRATOR_KEY")?;
    let staff = Client::connect(&address, &key)?;
    // Names must be unique, also when the example runs again.
    let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();

    let region = staff.region_create().body_map(|body| body.name(format!("Greater Accra {run}")).country("Ghana")).send().await?;
    let venue = staff.venue_create().body_map(|body| {
        let location = body.longitude(-0.2009).latitude(5.5527).address("Liberia Road, Accra");
        location.name(format!("National Theatre {run}")).region(region.self_.clone())
    });
    let venue = venue.send().await?;
    let category = staff.category_create();
    let category = category.body_map(|body| body.name(format!("Music {run}")).subcategories(vec!["Jazz".to_owned()]));
    let category = category.send().await?;
    println!("The staff created {}, {} and {}.", region.name, venue.name, category.name);

    let kofi = sign_up(&staff, &address, &format!("kofi{run}")).await?;
    let host = kofi.host_create();
    let host = host.body_map(|body| body.name(format!("Accra Live {run}")).contact("Kofi").email("kofi@example.com"));
    let host = host.send().await?;
    let event = kofi.event_create().body_map(|body| {
        let description =
            body.host(host.self_.clone()).title(format!("Harmattan Jazz Night {run}")).description("Jazz, outdoors.");
        let details = description.type_("Standard").public(true).category(category.self_.clone()).subcategory("Jazz");
        details.venue(venue.self_.clone()).start("2999-12-20T19:00".to_owned()).end("2999-12-20T23:00".to_owned())
    });
    let event = event.send().await?;
    println!("Kofi created the host {} and the event {}, {}.", host.name, event.title, event.self_);

    let event_id = last_segment(&event.self_);
    let section = kofi.section_create().event(event_id).body_map(|body| {
        let sales = body.sales_start("2020-01-01T00:00").sales_end("2999-12-20T19:00");
        sales.name("VIP").base_price(120.0).capacity(60)
    });
    let section = section.send().await?;
    println!("Its section {} costs {:.2}; {} tickets remain.", section.name, section.price.current, section.remaining);

    let submission = kofi.event_submission_create().event(event_id).send().await?;
    let decision = staff.submission_delete().submission(last_segment(&submission.self_)).approved(true).send().await?;
    println!("Kofi submitted the event for review; the staff's decision: {}.", decision.status);

    let ama = sign_up(&staff, &address, &format!("ama{run}")).await?;
    let items = HashMap::from([(format!("{}{}", event.self_, section.self_), 2)]);
    let order = ama.order_create().body_map(|body| body.items(items)).send().await?;
    println!("Ama's order {} is {}: {:.2} with fees.", order.number, order.status, order.total);
    let payment = ama.order_payment_create().order(order.number.as_str());
    let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
    let payment = payment.send().await?;
    let order = ama.order_get().order(order.number.as_str()).send().await?;
    println!("Her payment of {:.2} is {}; the order is {}.", payment.amount, payment.status, order.status);

    let tickets = ama.account_ticket_list().number(order.customer.number.as_str()).send().await?;
    let serials: Vec<String> = tickets.entries.iter().map(|ticket| ticket.serial.clone()).collect();
    println!("Her tickets: {}.", serials.join(", "));

    let token = kofi.event_token_create().event(event_id);
    let token = token.body_map(|body| body.sections(vec![format!("{}{}", event.self_, section.self_)])).send().await?;
    let redeemer = staff.token_authentication_get().code(token.code.as_str()).send().await?;
    let redeemer = Client::connect(&address, &redeemer.key)?;
    let admitted = redeemer.event_admission_create().event(event_id);
    let admitted = admitted.body_map(|body| body.serials(serials.clone()).device("Gate 1".to_owned())).send().await?;
    println!("With the admission token {}, {} tickets are admitted.", token.code, admitted.len());
    match redeemer.event_admission_create().event(event_id).body_map(|body| body.serials(serials)).send().await {
        Ok(_) => anyhow::bail!("the same tickets were admitted twice"),
        Err(error) => println!("A second admission returns {}.", error.status().context("no response")?),
    }
    Ok(())
}

/// Creates an account and logs in.
async fn sign_up(application: &Client, address: &str, name: &str) -> anyhow::Result<Client> {
    let password = "correct horse battery";
    let account = application.account_create();
    let account = account.body_map(|body| body.username(name).email(format!("{name}@example.com")).password(password));
    let number = account.send().await?.number.clone();
    let session = application.session_create().body_map(|body| body.identification(name).password(password)).send().await?;
    println!("{name} has account {number}.");
    Ok(Client::connect(address, &session.key)?)
}

fn last_segment(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or_default()
}
