//! HTML report: one page without external resources, readable without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::totals::{TagTotals, Totals, pluralize};
use super::{escape_control_characters, sort_findings, tag_label, truncate};
use crate::model::{Coverage, Finding, KnownFinding, Report, operation_label};

/// Content-Security-Policy of the page: no external resources, so that responses in it can't load any.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Longest request in characters. `report.json` contains the whole request.
const MAX_REQUEST_LENGTH: usize = 2000;

/// A section of the page: fragment identifier, title and content.
type PageSection = (&'static str, &'static str, fn(&Report) -> Markup);

const SECTIONS: [PageSection; 6] = [
    ("coverage", "Coverage by tag", tags),
    ("findings", "Findings", findings),
    ("known", "Known findings", known),
    ("operations", "Operations", operations),
    ("left-out", "Left out", left_out),
    ("notes", "Notes", notes),
];

/// Returns the text of `report.html`.
pub fn html(report: &Report) -> String {
    let totals = Totals::new(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_SECURITY_POLICY);
                title { (report.document) " · " (pluralize(totals.findings, "finding")) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                (header(report, &totals))
                main {
                    @for (id, title, content) in SECTIONS {
                        section id=(id) { h2 { (title) } (content(report)) }
                    }
                }
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    escape_control_characters(&page.into_string())
}

fn header(report: &Report, totals: &Totals) -> Markup {
    let Totals { operations, reached, left_out, declared, seen, checks, findings, known } = *totals;
    html! {
        header {
            p.over { "Comparison of a server with its API document" }
            h1 { (report.document) }
            p.verdict.wrong[findings > 0 || reached == 0] { (totals.verdict()) }
            dl.facts {
                div { dt { "Server" } dd { code { (report.target) } } }
                @if let Some(reference) = &report.reference {
                    div { dt { "Compared with" } dd { code { (reference) } } }
                }
                div { dt { "Seed" } dd { code { (report.seed) } } }
                div { dt { "Started" } dd { (report.started.format("%Y-%m-%d %H:%M:%S UTC")) } }
                div { dt { "Duration" } dd { (format!("{:.1} s", report.seconds)) } }
                div { dt { "Requests" } dd { (report.requests) } }
            }
            dl.totals {
                (total("Operations reached", reached, Some(operations)))
                (total("Left out", left_out, None))
                (total("Responses seen", seen, Some(declared)))
                (total("Checks made", checks, None))
                (total("Findings", findings, None))
                (total("Known", known, None))
            }
            nav aria-label="Contents" {
                @for (id, title, _) in SECTIONS { a href={ "#" (id) } { (title) } }
            }
        }
    }
}

fn total(name: &str, number: usize, of: Option<usize>) -> Markup {
    html! {
        div {
            dt { (name) }
            dd { (number) @if let Some(of) = of { small { " of " (of) } } }
        }
    }
}

fn tags(report: &Report) -> Markup {
    html! {
        table.tags {
            thead {
                tr {
                    th scope="col" { "Tag" }
                    th scope="col" { "Operations reached" }
                    th scope="col" { "Responses seen" }
                    th.number scope="col" { "Checks" }
                    th.number scope="col" { "Findings" }
                }
            }
            tbody {
                @for TagTotals { tag, totals } in Totals::by_tag(report) {
                    tr {
                        th scope="row" { (tag_label(&tag)) }
                        td { (fraction(totals.reached, totals.operations)) }
                        td { (fraction(totals.seen, totals.declared)) }
                        td.number { (totals.checks) }
                        td.number { @if totals.findings > 0 { b.wrong { (totals.findings) } } @else { "0" } }
                    }
                }
            }
        }
    }
}

/// A fraction as numbers and as a bar.
fn fraction(part: usize, whole: usize) -> Markup {
    let percent = (part * 100).checked_div(whole).unwrap_or_default();
    html! {
        @if whole == 0 {
            "–"
        } @else {
            span.part {
                span.bar aria-hidden="true" { span style={ "width:" (percent) "%" } {} }
                span { (part) "/" (whole) }
            }
        }
    }
}

fn findings(report: &Report) -> Markup {
    let causes = causes(report);
    let (common, single): (Vec<_>, Vec<_>) = causes.into_iter().partition(|findings| findings.len() > 1);
    html! {
        @if report.findings.is_empty() {
            p { "None." }
        } @else {
            p.hint { "In the commands, " code { "$KEY" } " is the API key." }
            (filter("Show findings with"))
        }
        @if !common.is_empty() {
            div.group {
                h3 { "Several operations" }
                @for findings in &common { (finding_article(report, findings[0], common_note(report, findings))) }
            }
        }
        @for group in single.chunk_by(|one, other| one[0].operation == other[0].operation) {
            div.group {
                h3 { (operation_heading(report, &group[0][0].operation)) }
                @for findings in group { (finding_article(report, findings[0], html! {})) }
            }
        }
    }
}

/// Returns the findings of each cause: those of one check with the same summary, the first operation first.
fn causes(report: &Report) -> Vec<Vec<&Finding>> {
    let mut causes: Vec<Vec<&Finding>> = Vec::new();
    for finding in sort_findings(report, &report.findings, |finding| finding) {
        let is_same = |cause: &&mut Vec<&Finding>| cause[0].check == finding.check && cause[0].summary == finding.summary;
        match causes.iter_mut().find(is_same) {
            Some(cause) => cause.push(finding),
            None => causes.push(vec![finding]),
        }
    }
    causes
}

/// The operations of a cause, each with its number of requests.
fn common_note(report: &Report, findings: &[&Finding]) -> Markup {
    html! {
        details {
            summary { "In " (findings.len()) " operations" }
            ul { @for finding in findings {
                li { (operation_heading(report, &finding.operation)) " " (pluralize(finding.occurrences, "time")) }
            } }
        }
    }
}

fn known(report: &Report) -> Markup {
    let ordered = sort_findings(report, &report.known, |known| &known.finding);
    html! {
        @if ordered.is_empty() {
            p { "None." }
        } @else {
            p.hint { "These findings are in the baseline. They don't count until they expire." }
        }
        @for KnownFinding { finding, reason, expires } in ordered {
            h3 { (operation_heading(report, &finding.operation)) }
            (finding_article(report, finding, html! { p.reason { b { "Known until " (expires) ": " } (reason) } }))
        }
    }
}

/// The operation of a finding.
fn operation_heading(report: &Report, id: &str) -> Markup {
    report.operation(id).map_or_else(|| html! { (operation_label(id)) }, operation_name)
}

fn operation_name(operation: &Coverage) -> Markup {
    html! {
        code.name { b { (operation.method) } " " (operation.path) }
        " " span.id { (operation.operation) }
    }
}

fn finding_article(report: &Report, finding: &Finding, note: Markup) -> Markup {
    html! {
        article {
            h4 { code { (finding.check.name()) } " " (finding.summary) }
            p.rule { (finding.check.rule()) }
            (note)
            div.sides {
                @for (title, value) in [("Expected", &finding.expected), ("Actual", &finding.actual)] {
                    @if !value.is_empty() { div { h5 { (title) } pre tabindex="0" { (value) } } }
                }
            }
            @if !finding.curl.is_empty() {
                h5 { "Request" }
                pre.request tabindex="0" { (truncate(&finding.curl, MAX_REQUEST_LENGTH)) }
            }
            dl.place {
                @if !finding.pointer.is_empty() { div { dt { "In the document" } dd { code { (finding.pointer) } } } }
                div { dt { "Seed" } dd { code { (report.seed) } } }
                @if finding.occurrences > 1 { div { dt { "Requests that showed it" } dd { (finding.occurrences) } } }
            }
        }
    }
}

fn operations(report: &Report) -> Markup {
    html! {
        p.hint {
            "Statuses that the document declares: " span.status.seen { "seen" } " or " span.status { "not seen" }
            ". Statuses that it does not declare: " span.status.wrong { "undeclared" } "."
        }
        (filter("Show operations with"))
        table.operations {
            thead { tr { th scope="col" { "Operation" } th scope="col" { "Responses" } th.number scope="col" { "Findings" } } }
            tbody {
                @for operation in &report.operations {
                    tr {
                        th scope="row" { (operation_name(operation)) (checks(operation)) }
                        td { (statuses(operation)) }
                        td.number { (finding_count(report, operation)) }
                    }
                }
            }
        }
    }
}

fn checks(operation: &Coverage) -> Markup {
    html! {
        @if let Some(reason) = &operation.left_out {
            p.reason { "Left out: " (reason) }
        } @else {
            details {
                summary { (pluralize(operation.check_count(), "check")) }
                ul { @for (check, counts) in &operation.checks {
                    li { code { (check.name()) } " " (counts.made) @if counts.failed > 0 { ", " b.wrong { (counts.failed) " failed" } } }
                } }
            }
        }
    }
}

fn statuses(operation: &Coverage) -> Markup {
    html! {
        @for status in operation.declared.union(&operation.seen) {
            @let seen = operation.seen.contains(status);
            @let declared = operation.declared.contains(status);
            span.status.seen[seen && declared].wrong[!declared] {
                (status) span.aside { @if !declared { " undeclared" } @else if seen { " seen" } @else { " not seen" } }
            } " "
        }
    }
}

fn finding_count(report: &Report, operation: &Coverage) -> Markup {
    let count = report.findings.iter().filter(|finding| finding.operation == operation.operation).count();
    html! { @if count > 0 { b.wrong { (count) } } @else { "0" } }
}

fn left_out(report: &Report) -> Markup {
    let left_out = report.operations.iter().filter_map(|operation| Some((operation, operation.left_out.as_ref()?)));
    list(left_out.map(|(operation, reason)| html! { (operation_name(operation)) ": " (reason) }).collect())
}

fn notes(report: &Report) -> Markup {
    list(report.notes.iter().map(|note| html! { (note) }).collect())
}

fn list(items: Vec<Markup>) -> Markup {
    html! {
        @if items.is_empty() { p { "None." } } @else { ul { @for item in items { li { (item) } } } }
    }
}

/// A text field that filters the items of its section. Hidden without scripts.
fn filter(label: &str) -> Markup {
    html! { p.filter hidden { label { (label) " " input type="search" placeholder="a check, an operation, a word …"; } " " output {} } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn shows_all_fields_of_findings() {
        let report = example::report();
        let page = html(&report);
        for finding in &report.findings {
            let Finding { check, operation, pointer, summary, expected, actual, curl, .. } = finding;
            for text in [check.name(), check.rule(), operation, pointer, summary, expected, actual, curl] {
                assert!(page.contains(&html! { (text) }.into_string()), "{text}");
            }
        }
        assert!(page.contains("Known until 2026-12-31: </b>Fixed in 3.1."), "{page}");
        assert!(page.contains("Left out: It was left out by"), "{page}");
        assert!(page.contains("The host H-100 could not be removed"), "{page}");
    }

    #[test]
    fn marks_undeclared_statuses() {
        let page = html(&example::report());
        assert!(page.contains(r#"<span class="status wrong">500<span class="aside"> undeclared</span></span>"#), "{page}");
        assert!(page.contains(r#"<span class="status seen">201<span class="aside"> seen</span></span>"#), "{page}");
        assert!(page.contains(r#"<span class="status">409<span class="aside"> not seen</span></span>"#), "{page}");
    }

    #[test]
    fn escapes_markup_and_control_characters() {
        let markup =
            |page: &str| page.split('<').skip(1).filter_map(|tag| tag.split('>').next()).map(str::to_owned).collect::<Vec<_>>();
        let hostile = html(&example::report_of("\"'></code><script>x()</script><b onclick='x()'>\0\x1B]]>"));
        let harmless = html(&example::report_of("harmless"));
        assert_eq!(markup(&hostile), markup(&harmless));
        assert!(!hostile.contains(|c: char| c.is_control() && c != '\n'), "{hostile}");
    }

    #[test]
    fn loads_no_external_resources() {
        let page = html(&example::report_of("harmless"));
        for reference in ["src=", "href=\"/", "href=\"h", "<link", "url(", "@import", "http:", "https:"] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}
