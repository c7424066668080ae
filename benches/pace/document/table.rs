//! Tables of Markdown, made of records.

/// A column of a table of records. A cell without a figure is empty.
pub(super) struct Column<'a, T> {
    title: &'a str,
    cell: &'a dyn Fn(&T) -> String,
}

pub(super) const fn column<'a, T>(title: &'a str, cell: &'a dyn Fn(&T) -> String) -> Column<'a, T> {
    Column { title, cell }
}

/// A table of these records, without the columns that have no figures. None of no records.
pub(super) fn table<T>(records: &[&T], columns: &[Column<'_, T>]) -> Option<String> {
    if records.is_empty() {
        return None;
    }
    let filled = columns
        .iter()
        .map(|column| (column.title, records.iter().map(|record| (column.cell)(record)).collect::<Vec<_>>()));
    let filled: Vec<_> =
        filled.filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty())).map(pad).collect();
    let mut text = String::new();
    for line in 0..records.len() + 2 {
        let cells: Vec<_> = filled.iter().map(|cells| cells[line].as_str()).collect();
        text += &format!("|{}|\n", cells.join("|"));
    }
    Some(text)
}

/// A column with its title and the rule under it, all as wide as the widest; numbers stand below each other.
fn pad((title, cells): (&str, Vec<String>)) -> Vec<String> {
    let cells: Vec<_> =
        cells.into_iter().map(|cell| if cell.is_empty() { "–".to_owned() } else { cell }).collect();
    let width = |text: &str| text.chars().count();
    let widest = cells.iter().map(|cell| width(cell)).chain([width(title)]).max().unwrap_or(0);
    let is_text = |cell: &String| cell.chars().any(|char| char.is_alphabetic() && !"µms".contains(char));
    let is_number = !cells.iter().any(is_text);
    let rule = if is_number { format!("{}:", "-".repeat(widest + 1)) } else { "-".repeat(widest + 2) };
    let padded = |cell: &str| {
        let space = " ".repeat(widest - width(cell));
        if is_number { format!(" {space}{cell} ") } else { format!(" {cell}{space} ") }
    };
    let rows = cells.iter().map(|cell| padded(cell));
    [padded(title), rule].into_iter().chain(rows).collect()
}
