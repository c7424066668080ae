//! The fenced blocks of a documentation page, and the comments above them that the tests read.

/// A fenced block.
pub(crate) struct Block<'a> {
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
    /// The file that the block shows: the sentence above it is "Save this … as `NAME`".
    pub(crate) file: Option<&'a str>,
    /// `<!-- not run: REASON -->`
    pub(crate) not_run: Option<&'a str>,
    /// `<!-- run first: COMMANDS -->`
    pub(crate) run_first: &'a str,
    /// `<!-- stop when: COMMAND -->`
    pub(crate) stop_when: Option<&'a str>,
}

/// The blocks of a page, in its order.
///
/// # Panics
///
/// If a fence is indented or not closed, or if a comment directly above one is unknown or empty.
pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    assert!(!page.lines().any(|line| line.trim_start() != line && line.trim_start().starts_with("```")));
    let (mut blocks, mut rest) = (Vec::new(), page);
    while let Some((above, fence)) = rest.split_once("\n```") {
        let line = page[..page.len() - fence.len()].lines().count();
        let (language, body) = fence.split_once('\n').unwrap();
        let (text, below) = body.split_once("\n```").unwrap();
        blocks.push(Block { line, language, text, ..described_by(above, line) });
        rest = below;
    }
    blocks
}

/// What the text above a fence sets.
fn described_by(above: &str, line: usize) -> Block<'_> {
    let (language, text) = ("", "");
    let mut block = Block { line, language, text, file: None, not_run: None, run_first: "", stop_when: None };
    let mut above = above.trim_end();
    while let Some((before, comment)) = above.strip_suffix("-->").and_then(|it| it.rsplit_once("<!--")) {
        let (name, value) = comment.split_once(':').unwrap_or((comment, ""));
        let value = value.trim();
        assert!(!value.is_empty(), "line {line}: the comment above has no value");
        match name.trim() {
            "not run" => block.not_run = Some(value),
            "run first" => block.run_first = value,
            "stop when" => block.stop_when = Some(value),
            name => panic!("line {line}: the comment above is unknown: {name}"),
        }
        above = before.trim_end();
    }
    block.file = shown_file(above);
    block
}

fn shown_file(above: &str) -> Option<&str> {
    let (_, sentence) = above.rsplit("\n\n").next()?.rsplit_once("Save this")?;
    sentence.split('`').nth(1)
}

/// The commands of a `console` block, each with the output shown below it.
///
/// # Panics
///
/// If the block does not begin with a command.
pub(crate) fn steps<'a>(block: &Block<'a>) -> Vec<(&'a str, &'a str)> {
    let text = block.text.strip_prefix("$ ");
    let text = text.unwrap_or_else(|| panic!("line {}: the block begins without `$ `", block.line));
    text.split("\n$ ").map(|step| step.split_once('\n').unwrap_or((step, ""))).collect()
}
