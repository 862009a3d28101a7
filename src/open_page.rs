//! The page to which the links in mails lead if the operator has no website: it says what to do. It is the same for every link, and
//! shows nothing about the order or the person.

use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dropshot::Body;
use http::{HeaderValue, Response, header};
use minijinja::{Environment, context};
use sha2::{Digest, Sha256};

use crate::state::App;

const STYLE: &str = "body{margin:0;padding:24px;background:#f2f4f7;color:#1d2433;font:16px/1.5 system-ui,sans-serif}\
main{max-width:560px;margin:0 auto;background:#fff;border:1px solid #dfe3ea;border-radius:10px;padding:24px 28px}\
h1{font-size:22px;margin:0 0 12px}section+section{border-top:1px solid #dfe3ea;margin-top:20px;padding-top:20px}";

/// Its values are escaped, because its name ends in `.html`.
const PAGE: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ platform }}</title>
<style>{{ style|safe }}</style>
</head>
<body>
<main>
<section>
<h1>{{ platform }}</h1>
<p>Open the app or the website with which you use {{ platform }}, and sign in. There you find your orders, tickets and
transfers. The number at the end of this page's address is that of the order, event or transfer.</p>
<p>Your tickets are also attached to the mail that confirmed your order.</p>
</section>
<section lang="fr">
<p>Ouvrez l’application ou le site avec lequel vous utilisez {{ platform }}, et connectez-vous. Vous y trouverez vos commandes,
vos billets et vos transferts. Le numéro à la fin de l’adresse de cette page est celui de la commande, de l’événement ou du
transfert.</p>
<p>Vos billets sont aussi joints au courriel de confirmation de votre commande.</p>
</section>
</main>
</body>
</html>
"#;

/// Nothing but the page's own style.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    let policy =
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Returns the page.
pub fn respond(app: &App) -> Response<Body> {
    let page = Environment::new().render_named_str(
        "open.html",
        PAGE,
        context! { platform => app.mail_templates.platform(), style => STYLE },
    );
    let mut response = Response::new(Body::from(page.unwrap_or_default()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}
