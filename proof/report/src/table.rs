//! Tables and paragraphs that can be read as text.

use textwrap::{Options, WordSplitter, core::display_width};

/// The widest line.
const WIDTH: usize = 116;
/// The width of prose in Markdown.
const PARAGRAPH_WIDTH: usize = 100;

/// Rows of cells under a row of titles.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    titles: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table of Markdown; where its lines would be too long, plain text in which cells go on over several
    /// lines.
    pub(crate) fn text(titles: [&'static str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
        let table = Self { titles, rows: rows.into_iter().collect() };
        let widths: [usize; N] =
            std::array::from_fn(|column| table.cells(column).map(display_width).max().unwrap_or(0));
        if widths.iter().sum::<usize>() + 3 * N < WIDTH {
            table.markdown(widths)
        } else {
            table.plain(widths)
        }
    }

    fn markdown(&self, widths: [usize; N]) -> String {
        let line = |cells: [&str; N]| {
            let cells: [String; N] = std::array::from_fn(|column| {
                self.pad(column, &cells[column].replace('|', "\\|"), widths[column])
            });
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: [String; N] = std::array::from_fn(|column| {
            let end = if self.is_number(column) { "-:" } else { "--" };
            format!("{}{end}", "-".repeat(widths[column]))
        });
        let mut text = line(self.titles) + &format!("|{}|\n", rule.join("|"));
        for row in &self.rows {
            text += &line(row.each_ref().map(String::as_str));
        }
        text
    }

    fn plain(&self, mut widths: [usize; N]) -> String {
        while widths.iter().sum::<usize>() + 3 * (N - 1) > WIDTH {
            let narrower = |column: usize| {
                let mut widths = widths;
                widths[column] -= 1;
                widths
            };
            // Narrower is the column that makes the table least longer; of several, the widest.
            let columns = (0..N).filter(|&column| widths[column] > self.longest_word(column));
            let costs = columns
                .map(|column| (self.height(narrower(column)), WIDTH - widths[column].min(WIDTH), column));
            let Some((_, _, column)) = costs.min() else { break };
            widths = narrower(column);
        }
        let line = |cells: [&str; N]| {
            let wrapped =
                std::array::from_fn::<_, N, _>(|column| textwrap::wrap(cells[column], widths[column]));
            let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
            let mut text = String::new();
            for line in 0..height {
                let cells: [String; N] = std::array::from_fn(|column| {
                    let part = wrapped[column].get(line).map_or("", |part| part.as_ref());
                    self.pad(column, part, widths[column])
                });
                text += cells.join("   ").trim_end();
                text.push('\n');
            }
            text
        };
        let rule = widths.map(|width| "-".repeat(width)).join("   ");
        let rows: Vec<_> = self.rows.iter().map(|row| line(row.each_ref().map(String::as_str))).collect();
        format!("```text\n{}{rule}\n{}```\n", line(self.titles), rows.join("\n"))
    }

    fn longest_word(&self, column: usize) -> usize {
        self.cells(column).flat_map(str::split_whitespace).map(display_width).max().unwrap_or(1)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[column].as_str()).chain([self.titles[column]])
    }

    /// How many lines all rows take.
    fn height(&self, widths: [usize; N]) -> usize {
        let lines = |row: &[String; N]| {
            let cells = row.iter().zip(widths).map(|(cell, width)| textwrap::wrap(cell, width).len());
            cells.max().unwrap_or(0)
        };
        self.rows.iter().map(lines).sum()
    }

    fn pad(&self, column: usize, text: &str, width: usize) -> String {
        let space = " ".repeat(width.saturating_sub(display_width(text)));
        if self.is_number(column) { space + text } else { text.to_owned() + &space }
    }

    /// Numbers stand below each other.
    fn is_number(&self, column: usize) -> bool {
        let is_number = |text: &String| text.chars().all(|char| char.is_ascii_digit() || ",.".contains(char));
        self.rows.iter().all(|row| is_number(&row[column]))
    }
}

/// A paragraph, wrapped at spaces alone: an address and an option stay whole.
pub fn paragraph(text: &str) -> String {
    let options = Options::new(PARAGRAPH_WIDTH).word_splitter(WordSplitter::NoHyphenation).break_words(false);
    format!("{}\n", textwrap::fill(text, options))
}

/// A number as people write it.
pub fn counted(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_is_markdown() {
        let text = Table::text(["fault", "times"], [["a | b".into(), "1,000".into()]]);
        assert_eq!(text, "| fault | times |\n|-------|------:|\n| a \\| b | 1,000 |\n");
    }

    #[test]
    fn a_wide_table_goes_on_over_several_lines() {
        let long = "word ".repeat(40);
        let text = Table::text(["fault", "times"], [[long.trim().into(), "7".into()]]);
        assert!(text.starts_with("```text\nfault "), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 40, "{text}");
        assert!(text.lines().nth(3).unwrap().ends_with("     7"), "{text}");
    }

    #[test]
    fn an_address_in_a_paragraph_stays_whole() {
        let address = format!("https://host/{}", "long-word/".repeat(20));
        let text = paragraph(&format!("{} {address} end", "word ".repeat(20)));
        assert!(text.contains(&address) && text.lines().count() > 2, "{text}");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(counted), ["0", "999", "1,000", "1,234,567"]);
    }
}
