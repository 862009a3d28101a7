//! Converts a Markdown description to a list of plain-text blocks, for clients without a Markdown parser.

use boxoffice_openapi::is_forbidden;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use schemars::JsonSchema;
use serde::Serialize;

/// A parsed Markdown text.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct ParsedMarkdown {
    /// Blocks, in the text's order.
    pub result: Vec<MarkdownBlock>,
}

/// Kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    Heading,
    Paragraph,
    List,
    Code,
    Quote,
}

/// A block of a parsed text.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarkdownBlock {
    #[serde(rename = "type")]
    kind: BlockKind,
    #[schemars(range(min = 1, max = 6))]
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<String>>,
}

/// Parses CommonMark. Every text is valid CommonMark. Raw HTML is left out, because the result is plain text.
pub fn parse(text: &str) -> ParsedMarkdown {
    let mut builder = BlockBuilder::default();
    for event in Parser::new(text) {
        builder.read(event);
    }
    ParsedMarkdown { result: builder.blocks }
}

/// Builds blocks from the parser's events. Elements inside a block add their text to it. Nothing here is recursive, so the
/// nesting depth is limited only by the text's length.
#[derive(Default)]
struct BlockBuilder {
    blocks: Vec<MarkdownBlock>,
    /// Number of open elements.
    depth: usize,
    /// Kind of the outermost open block; `None` if that block is left out.
    kind: Option<BlockKind>,
    level: Option<i64>,
    /// Text of the block, or one text per item of a list.
    texts: Vec<String>,
    /// Index into `texts` of each open item.
    open: Vec<usize>,
}

impl BlockBuilder {
    fn read(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Code(text) => self.add(&text),
            Event::SoftBreak => self.add(" "),
            Event::HardBreak => self.add("\n"),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if self.depth == 0 {
            self.begin(tag);
        } else if self.kind == Some(BlockKind::List) && matches!(tag, Tag::Item) {
            self.open_text();
        } else if matches!(tag, Tag::Paragraph | Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::Item) {
            self.break_line();
        }
        self.depth += 1;
    }

    fn begin(&mut self, tag: &Tag<'_>) {
        self.level = None;
        self.kind = match tag {
            Tag::Heading { level, .. } => {
                self.level = Some(*level as i64);
                Some(BlockKind::Heading)
            }
            Tag::Paragraph => Some(BlockKind::Paragraph),
            Tag::List(_) => Some(BlockKind::List),
            Tag::CodeBlock(_) => Some(BlockKind::Code),
            Tag::BlockQuote(_) => Some(BlockKind::Quote),
            _ => None,
        };
        self.texts.clear();
        self.open.clear();
        if self.kind != Some(BlockKind::List) {
            self.open_text();
        }
    }

    fn open_text(&mut self) {
        self.open.push(self.texts.len());
        self.texts.push(String::new());
    }

    fn end(&mut self, tag: TagEnd) {
        self.depth -= 1;
        if self.kind == Some(BlockKind::List) && tag == TagEnd::Item {
            self.open.pop();
        }
        if self.depth == 0 {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let Some(kind) = self.kind.take() else { return };
        let trim = |text: &String| match kind {
            BlockKind::Code => text.trim_end_matches('\n').to_owned(),
            _ => text.trim().to_owned(),
        };
        let texts: Vec<String> = self.texts.iter().map(trim).filter(|text| !text.trim().is_empty()).collect();
        if texts.is_empty() {
            return;
        }
        let (text, items) = if kind == BlockKind::List { (None, Some(texts)) } else { (texts.into_iter().next(), None) };
        self.blocks.push(MarkdownBlock { kind, level: self.level, text, items });
    }

    fn text(&mut self) -> Option<&mut String> {
        self.open.last().and_then(|index| self.texts.get_mut(*index))
    }

    fn add(&mut self, text: &str) {
        if let Some(to) = self.text() {
            // An entity, such as `&#x202e;`, could stand for a character that the description itself may not contain.
            to.extend(text.chars().filter(|character| !is_forbidden(*character)));
        }
    }

    /// Starts a new line for a block nested in the outermost one.
    fn break_line(&mut self) {
        if let Some(text) = self.text().filter(|text| !text.is_empty() && !text.ends_with('\n')) {
            text.push('\n');
        }
    }
}
