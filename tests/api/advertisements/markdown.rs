//! The blocks of a description in Markdown.

use std::fs;
use std::time::Duration;

use boxoffice::features::catalog::advertisements::parse_markdown;
use serde_json::{Value, json};

fn parsed(text: &str) -> Value {
    serde_json::to_value(parse_markdown(text)).unwrap_or_default()["result"].take()
}

#[test]
fn parses_every_kind_of_block() {
    for (text, expected) in [
        ("# Jazz *tonight*", json!([{ "type": "heading", "level": 1, "text": "Jazz tonight" }])),
        ("Doors\n-----", json!([{ "type": "heading", "level": 2, "text": "Doors" }])),
        ("###### Small", json!([{ "type": "heading", "level": 6, "text": "Small" }])),
        ("One\ntwo\n\nthree", json!([{ "type": "paragraph", "text": "One two" }, { "type": "paragraph", "text": "three" }])),
        ("- one\n- **two**", json!([{ "type": "list", "items": ["one", "two"] }])),
        ("2. one\n3. two", json!([{ "type": "list", "items": ["one", "two"] }])),
        ("```rust\nlet a;\n  b();\n```", json!([{ "type": "code", "text": "let a;\n  b();" }])),
        ("    indented\n      more", json!([{ "type": "code", "text": "indented\n  more" }])),
        ("> said\n> she", json!([{ "type": "quote", "text": "said she" }])),
    ] {
        assert_eq!(parsed(text), expected, "{text:?}");
    }
}

#[test]
fn keeps_text_of_inline_elements() {
    for (text, expected) in [
        ("a `b` [c](/d \"e\") ![f](/g) <https://h.example>", "a b c f https://h.example"),
        ("a  \nb", "a\nb"),
        ("a\\\nb &amp; &lt; \\*", "a\nb & < *"),
        ("a <b>c</b><br>d", "a cd"),
        ("a &#x202e;b&#x7;&#x2067; &#x9;c", "a b \tc"),
        ("a <script>alert(1)</script>", "a alert(1)"),
    ] {
        assert_eq!(parsed(text), json!([{ "type": "paragraph", "text": expected }]), "{text:?}");
    }
}

#[test]
fn flattens_nested_blocks() {
    for (text, expected) in [
        ("- a\n  - b\n    - c\n- d", json!([{ "type": "list", "items": ["a", "b", "c", "d"] }])),
        ("- a\n\n  b\n\n  > c\n- d", json!([{ "type": "list", "items": ["a\nb\nc", "d"] }])),
        ("> # a\n> b\n>\n> - c\n> - d\n> > e", json!([{ "type": "quote", "text": "a\nb\nc\nd\ne" }])),
        ("> ```\n> x\n> ```\n> y", json!([{ "type": "quote", "text": "x\ny" }])),
        ("- - - a", json!([{ "type": "list", "items": ["a"] }])),
    ] {
        assert_eq!(parsed(text), expected, "{text:?}");
    }
}

#[test]
fn omits_blocks_without_text() {
    for text in
        ["", " \n\t", "#", "-", "> ", "```\n```", "***", "<div>\nx\n</div>", "<script>x</script> y", "<!-- x -->", "[a]: /b"]
    {
        assert_eq!(parsed(text), json!([]), "{text:?}");
    }
    let around = parsed("a\n\n<div>x</div>\n\n---\n\nb");
    assert_eq!(around, json!([{ "type": "paragraph", "text": "a" }, { "type": "paragraph", "text": "b" }]));
}

/// Returns the CPU time of this thread. Unlike the time that passes, it doesn't depend on how busy the machine is.
fn cpu_time() -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(statistics.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn parses_pathological_text_quickly() {
    const LENGTH: usize = 10_000;
    for unit in [
        "> ",
        "- ",
        "* a\n",
        "1. ",
        "[",
        "![",
        "](",
        "*a ",
        "_a**",
        "`",
        "`a",
        "<",
        "<a ",
        "&",
        "#",
        "\t",
        "[a](",
        "[a]: b\n",
        "~",
        "\\",
        ">- ",
        "a\n    ",
        "<!--",
        "<?",
        "]]>",
        "![[]()",
        "é",
        "\u{0}",
        "|",
        "- a\n\n\n",
    ] {
        let text: String = unit.chars().cycle().take(LENGTH).collect();
        let start = cpu_time();
        parse_markdown(&text);
        let took = cpu_time() - start;
        assert!(took < Duration::from_secs(2), "{unit:?} took {took:?}");
    }
    let nested: String = (0..140).map(|depth| format!("{}- a\n", " ".repeat(depth))).collect();
    assert_eq!(parsed(&nested)[0]["type"], "list");
}
