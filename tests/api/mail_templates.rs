//! Templates of mails: all of them in each language, escaping, and the operator's replacements.

use std::fs;
use std::path::Path;

use boxoffice::kernel::outbox::{MailTemplate, MailTemplates, RenderedMail, write_embedded};
use boxoffice::kernel::settings::Settings;
use boxoffice::kernel::types::language::Language;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::test_settings;

fn review_decision(title: &str, reason: &str) -> Value {
    json!({ "name": "Kofi", "kind": "event", "title": title, "path": "/events/17630000000001", "approved": false, "reason": reason })
}

fn render(settings: &Settings, language: Language, values: &Value) -> RenderedMail {
    MailTemplates::open(settings).unwrap().render(MailTemplate::ReviewDecision, language, values).unwrap()
}

/// Settings with templates in `folder`.
fn with_templates(folder: &Path) -> Settings {
    let mut settings = test_settings(folder);
    settings.mail.templates = Some(folder.to_owned());
    settings
}

fn problem(settings: &Settings) -> String {
    MailTemplates::open(settings).err().unwrap().to_string()
}

/// With a folder, `open` renders each template with all of its sample values; an undefined variable is an error.
#[test]
fn every_template_is_complete_in_every_language() {
    let folder = tempdir().unwrap();
    write_embedded(folder.path()).unwrap();
    for template in MailTemplate::ALL {
        let texts = Language::ALL.map(|language| {
            fs::read_to_string(folder.path().join(format!("{}/{}.html", language.code(), template.name()))).unwrap()
        });
        assert_ne!(texts[0], texts[1], "{} is not translated", template.name());
        assert_eq!(MailTemplate::parse(template.name()), Some(*template));
    }
    assert!(MailTemplates::open(&with_templates(folder.path())).is_ok());
    assert!(write_embedded(folder.path()).unwrap_err().to_string().ends_with("exists already"));
}

#[test]
fn values_are_escaped_and_add_no_header() {
    let folder = tempdir().unwrap();
    let title = "<b>Rock</b> & \"Roll\"\r\nBcc: all@example.com\u{2028}\u{0}now";

    let mail = render(&test_settings(folder.path()), Language::En, &review_decision(title, "<script>alert(1)</script>"));

    assert_eq!(mail.subject, "Your event “<b>Rock</b> & \"Roll\" Bcc: all@example.com now” was rejected");
    let html = mail.html.unwrap();
    assert!(html.contains("&lt;b&gt;Rock&lt;&#x2f;b&gt; &amp; &quot;Roll&quot;") && !html.contains("<script"), "{html}");
    assert!(mail.text.contains("Reason: <script>alert(1)</script>"), "{}", mail.text);
    let long = render(&test_settings(folder.path()), Language::En, &review_decision(&"é".repeat(5000), ""));
    assert_eq!((long.subject.chars().count(), long.subject.ends_with('…')), (201, true));
}

#[test]
fn links_lead_to_the_website_or_to_a_page_of_the_server() {
    let folder = tempdir().unwrap();
    let mut settings = test_settings(folder.path());
    let link = |settings: &Settings| render(settings, Language::Fr, &review_decision("Jazz", "")).text;

    let own = link(&settings);
    settings.site_url = Some("https://tickets.example".to_owned());
    let site = link(&settings);

    assert!(own.contains("https://boxoffice.example/open?to=/events/17630000000001"), "{own}");
    assert!(site.contains("https://tickets.example/events/17630000000001"), "{site}");
}

#[test]
fn operator_replaces_templates() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("fr")).unwrap();
    let file = folder.path().join("fr/review-decision.html");
    let template = "{% extends 'base.html' %}{% block subject %}Décision : {{ title }}{% endblock %}\n{% block content %}<p>OK</p>{% endblock %}";
    fs::write(&file, template).unwrap();
    let settings = with_templates(folder.path());

    let french = render(&settings, Language::Fr, &review_decision("Jazz", ""));
    let english = render(&settings, Language::En, &review_decision("Jazz", ""));

    assert_eq!((french.subject.as_str(), english.subject.as_str()), ("Décision : Jazz", "Your event “Jazz” was rejected"));
    for (text, expected) in [
        ("<p>\n{% if %}", ", line 2: syntax error"),
        (&template.replace("OK", "\n{{ titel }}"), ", line 3: undefined value"),
        (&template.replace("OK", "{{ title|shout }}"), ", line 2: unknown filter"),
        (&template.replace("base.html", "frame.html"), "template not found"),
    ] {
        fs::write(&file, text).unwrap();
        let problem = problem(&settings);
        assert!(problem.contains("fr/review-decision.html") && problem.contains(expected), "{problem}");
    }
    fs::remove_file(&file).unwrap();
    fs::write(folder.path().join("fr/refunds.html"), template).unwrap();
    assert!(problem(&settings).ends_with("fr/refunds.html replaces no mail template"), "{}", problem(&settings));
    fs::remove_file(folder.path().join("fr/refunds.html")).unwrap();
    fs::write(&file, "x".repeat(300 * 1024)).unwrap();
    assert!(problem(&settings).ends_with("is larger than 256 KiB"), "{}", problem(&settings));
}
