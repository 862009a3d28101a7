//! The report for build servers, as JUnit's XML: what Jenkins, GitLab and GitHub's actions read.

use std::collections::BTreeMap;
use std::{io, slice};

use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::{ElementWriter, Writer};

use super::text::details;
use super::totals::{Totals, counted};
use super::{tag_name, visible};
use crate::model::{Check, Coverage, Finding, KnownFinding, Report, subject};

type Element<'a> = ElementWriter<'a, Vec<u8>>;

/// A check of an operation: a test case.
#[derive(Debug, Default)]
struct Case<'a> {
    findings: Vec<&'a Finding>,
    known: Vec<&'a KnownFinding>,
}

/// What a tag's cases came to.
#[derive(Debug)]
struct Suite<'a> {
    name: &'a str,
    /// By operationId and check.
    cases: BTreeMap<(&'a str, Check), Case<'a>>,
    left_out: Vec<(&'a Coverage, &'a str)>,
}

/// The text of `junit.xml`: a suite for each tag, and in it a case for each check that was made of an operation, whose class
/// the operation is.
///
/// All that a check found is one failure, because most readers take a case's first failure and no other. A case that found
/// nothing but what is known is skipped, as is an operation that was left out. Of the times only that of the whole is known,
/// and the others are 0, because some readers can't do without. Timestamps are UTC and don't say so: JUnit's have no zone.
///
/// # Errors
/// None that is known of: it is written into memory.
pub fn junit(report: &Report) -> anyhow::Result<String> {
    let tags = Totals::by_tag(report);
    let suites: Vec<Suite<'_>> = tags.iter().map(|tag| Suite::new(report, &tag.tag)).collect();
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    counted_element(&mut xml, "testsuites", &report.document, &suites)
        .with_attributes([("time", format!("{:.3}", report.seconds).as_str()), ("timestamp", &timestamp(report))])
        .write_inner_content(|xml| suites.iter().try_for_each(|suite| suite.write(xml, report)))?;
    Ok(visible(&String::from_utf8(xml.into_inner())?) + "\n")
}

fn timestamp(report: &Report) -> String {
    report.started.format("%Y-%m-%dT%H:%M:%S").to_string()
}

impl<'a> Suite<'a> {
    fn new(report: &'a Report, tag: &'a str) -> Self {
        let mut suite = Self { name: tag_name(tag), cases: BTreeMap::new(), left_out: Vec::new() };
        for operation in report.operations.iter().filter(|operation| operation.tag == tag) {
            for check in operation.checks.keys() {
                suite.cases.entry((&operation.operation, *check)).or_default();
            }
            suite.left_out.extend(operation.left_out.as_deref().map(|reason| (operation, reason)));
        }
        for finding in report.findings.iter().filter(|finding| report.tag(finding) == tag) {
            suite.cases.entry((&finding.operation, finding.check)).or_default().findings.push(finding);
        }
        for known in report.known.iter().filter(|known| report.tag(&known.finding) == tag) {
            suite.cases.entry((&known.finding.operation, known.finding.check)).or_default().known.push(known);
        }
        suite
    }

    fn tests(&self) -> usize {
        self.cases.len() + self.left_out.len()
    }

    fn failures(&self) -> usize {
        self.cases.values().filter(|case| !case.findings.is_empty()).count()
    }

    fn skipped(&self) -> usize {
        self.cases.values().filter(|case| case.is_skipped()).count() + self.left_out.len()
    }

    fn write(&self, xml: &mut Writer<Vec<u8>>, report: &Report) -> io::Result<()> {
        counted_element(xml, "testsuite", self.name, slice::from_ref(self))
            .with_attributes([("time", "0"), ("timestamp", &timestamp(report))])
            .write_inner_content(|xml| {
                for ((operation, check), case) in &self.cases {
                    case.write(xml, subject(operation), check.name())?;
                }
                for (operation, reason) in &self.left_out {
                    case_element(xml, &operation.operation, "left out").write_inner_content(|xml| skipped(xml, reason))?;
                }
                Ok(())
            })?;
        Ok(())
    }
}

impl Case<'_> {
    fn is_skipped(&self) -> bool {
        self.findings.is_empty() && !self.known.is_empty()
    }

    fn write(&self, xml: &mut Writer<Vec<u8>>, operation: &str, check: &str) -> io::Result<()> {
        let case = case_element(xml, operation, check);
        if let [first, ..] = self.findings.as_slice() {
            let message = match self.findings.len() {
                1 => first.summary.clone(),
                several => format!("{}, the first: {}", counted(several, "finding"), first.summary),
            };
            let texts: Vec<String> =
                self.findings.iter().map(|finding| format!("{}\n{}", finding.summary, details(finding))).collect();
            case.write_inner_content(|xml| {
                let failure = xml.create_element("failure").with_attributes([("message", message.as_str()), ("type", check)]);
                failure.write_text_content(BytesText::new(&texts.join("\n")))?;
                Ok(())
            })?;
        } else if self.is_skipped() {
            let reasons: Vec<String> = self.known.iter().map(|known| reason(known)).collect();
            case.write_inner_content(|xml| skipped(xml, &reasons.join("\n")))?;
        } else {
            case.write_empty()?;
        }
        Ok(())
    }
}

/// An element that says of suites how many cases they have.
fn counted_element<'a>(xml: &'a mut Writer<Vec<u8>>, element: &'a str, name: &str, suites: &[Suite<'_>]) -> Element<'a> {
    let tests: usize = suites.iter().map(Suite::tests).sum();
    let failures: usize = suites.iter().map(Suite::failures).sum();
    let skipped: usize = suites.iter().map(Suite::skipped).sum();
    xml.create_element(element).with_attribute(("name", name)).with_attributes([
        ("tests", tests.to_string().as_str()),
        ("failures", &failures.to_string()),
        ("skipped", &skipped.to_string()),
        ("errors", "0"),
    ])
}

fn case_element<'a>(xml: &'a mut Writer<Vec<u8>>, operation: &str, name: &str) -> Element<'a> {
    xml.create_element("testcase").with_attributes([("classname", operation), ("name", name), ("time", "0")])
}

fn skipped(xml: &mut Writer<Vec<u8>>, message: &str) -> io::Result<()> {
    xml.create_element("skipped").with_attribute(("message", message)).write_empty()?;
    Ok(())
}

fn reason(known: &KnownFinding) -> String {
    format!("{} Known until {}: {}", known.finding.summary, known.expires, known.reason)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use quick_xml::{Reader, XmlVersion};

    use super::*;
    use crate::report::example;

    /// The elements of a document as their names, and its attributes and texts as they were before they were written.
    fn read(xml: &str) -> (Vec<String>, Vec<String>) {
        let mut reader = Reader::from_str(xml);
        let (mut names, mut texts, mut open) = (Vec::new(), Vec::new(), 0);
        let mut text = String::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Eof => break,
                Event::Text(part) => text += &part.decode().unwrap(),
                Event::GeneralRef(name) => {
                    text.push_str(quick_xml::escape::resolve_predefined_entity(&name.decode().unwrap()).unwrap())
                }
                event => {
                    texts.push(std::mem::take(&mut text));
                    if let Event::Start(start) | Event::Empty(start) = &event {
                        names.push(String::from_utf8(start.name().as_ref().to_vec()).unwrap());
                        texts.extend(
                            start.attributes().map(|attribute| {
                                attribute.unwrap().normalized_value(XmlVersion::Explicit1_0).unwrap().into_owned()
                            }),
                        );
                    }
                    match event {
                        Event::Start(_) => open += 1,
                        Event::End(_) => open -= 1,
                        _ => {}
                    }
                }
            }
        }
        assert_eq!(open, 0, "{xml}");
        (names, texts)
    }

    #[test]
    fn a_case_for_each_check_of_an_operation() {
        let xml = junit(&example::report()).unwrap();
        let (names, texts) = read(&xml);
        let count = |name: &str| names.iter().filter(|other| *other == name).count();
        assert_eq!((count("testsuite"), count("testcase"), count("failure"), count("skipped")), (3, 9, 3, 2));
        let totals = "tests=\"9\" failures=\"3\" skipped=\"2\" errors=\"0\" time=\"12.340\" timestamp=\"2026-11-21T16:30:00\"";
        assert!(xml.contains(totals), "{xml}");
        for text in [
            "2 findings, the first: The property `number` is missing.",
            "The header `Location` is missing. Known until 2026-12-31: Mended in 3.1.",
            "It was left out by --skip account_deletion_create.",
            "the server as a whole",
        ] {
            assert!(texts.iter().any(|other| other == text), "{text}: {texts:#?}");
        }
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let hostile = "<a b='1'>]]>&amp;<!--\"\u{0}\u{1B}[31m\u{FFFF}é\n\u{1F39F}";
        let xml = junit(&example::report_of(hostile)).unwrap();
        let (names, texts) = read(&xml);
        let known = ["testsuites", "testsuite", "testcase", "failure", "skipped"];
        assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
        assert!(texts.contains(&visible(hostile).replace('\n', " ")), "{texts:#?}");
        let failure = format!("{}\n  asked ", visible(hostile));
        assert!(texts.iter().any(|text| text.starts_with(&failure)), "{texts:#?}");
        let forbidden = |c: char| matches!(c, '\0'..='\x08' | '\x0B'..='\x1F' | '\u{FFFE}' | '\u{FFFF}');
        assert!(!xml.contains(forbidden) && !xml.contains("]]>"), "{xml}");
    }
}
