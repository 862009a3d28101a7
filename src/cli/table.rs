//! Tables for people, on standard output.

/// Returns rows in columns, each as wide as its widest cell. Line breaks and control characters in cells are replaced by spaces.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let header = header.iter().map(|cell| (*cell).to_owned()).collect();
    let plain = |cell: &String| cell.replace(char::is_control, " ");
    let rows: Vec<Vec<String>> =
        [&header].into_iter().chain(rows).map(|row: &Vec<String>| row.iter().map(plain).collect()).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
