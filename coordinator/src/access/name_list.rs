//! Lists of names, for the creation of many tokens at once.
//!
//! A list has one name a line, or is a table: comma-separated values whose header has a column
//! `name`. Spreadsheets of some countries separate values by semicolons, and many begin a file with
//! a byte order mark, so both are accepted. Blank lines and lines that begin with `#` do not count.

use std::collections::HashMap;

use csv::{ReaderBuilder, StringRecord, Trim, WriterBuilder};
use thiserror::Error as ThisError;

/// The heading of the column with the names, in any case.
const NAME: &str = "name";

/// A list of names, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameList {
    /// The headings of the table; only the name for a list without a header.
    header: Vec<String>,
    /// The position of the names in a row.
    column: usize,
    rows: Vec<Row>,
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// Its number, from 1.
    line: u64,
    /// One value for each heading.
    values: Vec<String>,
}

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum NameListError {
    /// It has no names.
    #[error("there are no names: write one name a line, or a table with a column `name`")]
    Empty,
    /// A line of a table cannot be read.
    #[error("{0}")]
    Table(String),
    /// A line has no name.
    #[error("line {line} has no name")]
    NoName {
        /// The number of the line, from 1.
        line: u64,
    },
    /// Names are repeated.
    #[error("write each name once: {}", describe_repeated(.0))]
    Repeated(Vec<RepeatedName>),
}

/// A name that a list repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedName {
    /// The name.
    pub name: String,
    /// The numbers of its lines, from 1.
    pub lines: Vec<u64>,
}

fn describe_repeated(names: &[RepeatedName]) -> String {
    let describe = |RepeatedName { name, lines }: &RepeatedName| {
        let (last, others) = lines.split_last().expect("a repeated name has two lines or more");
        let others: Vec<_> = others.iter().map(u64::to_string).collect();
        format!("{name} is on lines {} and {last}", others.join(", "))
    };
    names.iter().map(describe).collect::<Vec<_>>().join("; ")
}

impl NameList {
    /// Reads a list in which every line has a name and no name is repeated.
    pub fn parse(text: &str) -> Result<Self, NameListError> {
        let list = Self::read(text)?;
        if let Some(row) = list.rows.iter().find(|row| row.values[list.column].is_empty()) {
            return Err(NameListError::NoName { line: row.line });
        }
        let repeated = list.repeated();
        if repeated.is_empty() { Ok(list) } else { Err(NameListError::Repeated(repeated)) }
    }

    /// Reads a list, whose names may be empty or repeated.
    pub fn read(text: &str) -> Result<Self, NameListError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        text.lines().find(is_content).ok_or(NameListError::Empty)?;
        let list = match Self::parse_table(text, b',')? {
            Some(list) => list,
            None => Self::parse_table(text, b';')?.unwrap_or_else(|| Self::parse_lines(text)),
        };
        if list.rows.is_empty() { Err(NameListError::Empty) } else { Ok(list) }
    }

    fn parse_lines(text: &str) -> Self {
        let lines = (1..).zip(text.lines().map(str::trim));
        let names = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let rows = names.map(|(line, name)| Row { line, values: vec![name.to_owned()] });
        Self { header: vec![NAME.to_owned()], column: 0, rows: rows.collect() }
    }

    /// The table with values separated by `delimiter`. `None` if its header has no column `name`.
    fn parse_table(text: &str, delimiter: u8) -> Result<Option<Self>, NameListError> {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(delimiter).trim(Trim::All).comment(Some(b'#')).flexible(true);
        // Blank lines may precede the header.
        builder.has_headers(false);
        let mut reader = builder.from_reader(text.as_bytes());
        let is_content = |record: &Result<StringRecord, csv::Error>| {
            record.as_ref().map_or(true, |record| record.iter().any(|value| !value.is_empty()))
        };
        let failed = |error: csv::Error| NameListError::Table(error.to_string());
        let mut records = reader.records().filter(is_content);
        let Some(header) = records.next() else { return Ok(None) };
        let header: Vec<_> = header.map_err(failed)?.iter().map(str::to_owned).collect();
        let mut headings = header.iter();
        let column = headings.position(|heading| heading.eq_ignore_ascii_case(NAME));
        let Some(column) = column else { return Ok(None) };
        let rows = records.map(|record| row(&record.map_err(failed)?, header.len()));
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(Some(Self { header, column, rows }))
    }

    /// The names that the list repeats, with their lines.
    fn repeated(&self) -> Vec<RepeatedName> {
        let mut names: Vec<RepeatedName> = Vec::new();
        let mut lines = HashMap::<&str, usize>::new();
        for (name, row) in self.names().zip(&self.rows) {
            let index = *lines.entry(name).or_insert(names.len());
            match names.get_mut(index) {
                Some(known) => known.lines.push(row.line),
                None => names.push(RepeatedName { name: name.to_owned(), lines: vec![row.line] }),
            }
        }
        names.retain(|name| name.lines.len() > 1);
        names
    }

    /// The names, in the order of the list.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows.iter().map(|row| row.values[self.column].as_str())
    }

    /// The names with the numbers of their lines, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &str)> {
        self.rows.iter().map(|row| row.line).zip(self.names())
    }

    /// The table as comma-separated values with more columns: their headings, and their values for
    /// each row.
    ///
    /// # Errors
    /// If a row has another number of values than there are headings.
    pub fn csv(&self, headings: &[&str], values: &[Vec<String>]) -> Result<String, csv::Error> {
        let mut writer = WriterBuilder::new().from_writer(Vec::new());
        writer
            .write_record(self.header.iter().map(String::as_str).chain(headings.iter().copied()))?;
        for (row, values) in self.rows.iter().zip(values) {
            writer.write_record(row.values.iter().chain(values))?;
        }
        let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A row of a table with this number of columns.
fn row(record: &StringRecord, columns: usize) -> Result<Row, NameListError> {
    let line = record.position().map_or(0, csv::Position::line);
    if record.len() > columns {
        return Err(NameListError::Table(format!(
            "line {line} has {} values and the header {columns}: put a value with a comma in \
             quotes",
            record.len()
        )));
    }
    let mut values: Vec<_> = record.iter().map(str::to_owned).collect();
    values.resize(columns, String::new());
    Ok(Row { line, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        NameList::parse(text).unwrap().names().map(str::to_owned).collect()
    }

    #[test]
    fn a_list_has_one_name_a_line() {
        let list = "\u{feff}# the class of 2027\r\nAda Lovelace\r\n\r\n  Kowalski, Jan \n#Eve\n";
        assert_eq!(names(list), ["Ada Lovelace", "Kowalski, Jan"]);
    }

    #[test]
    fn a_table_has_a_column_of_names() {
        let table = "Email,\"Name\"\n# a comment\na@b.pl,\"Kowalski, Jan\"\n,\nc@d.pl,Żaneta\n";
        assert_eq!(names(table), ["Kowalski, Jan", "Żaneta"]);
        assert_eq!(names("name;email\nada;a@b.pl\nbob\n"), ["ada", "bob"]);
        let list = NameList::parse(table).unwrap();
        let tokens = [vec!["arb_1".to_owned()], vec!["arb_2".to_owned()]];
        assert_eq!(
            list.csv(&["token"], &tokens).unwrap(),
            "Email,Name,token\na@b.pl,\"Kowalski, Jan\",arb_1\nc@d.pl,Żaneta,arb_2\n"
        );
    }

    #[test]
    fn headings_may_contain_the_separator() {
        assert_eq!(names("\"Surname, first\",name\nLovelace,ada\n"), ["ada"]);
        assert_eq!(names("\"Surname, first\";name\nLovelace;ada\n"), ["ada"]);
        assert_eq!(names("\"Group, name\",email,name\n1,a@b.pl,ada\n"), ["ada"]);
        assert_eq!(names("Group,name,email\n\"1, a\",ada\n"), ["ada"]);
    }

    #[test]
    fn blank_lines_may_precede_a_list() {
        assert_eq!(names("  \n\t\nemail,name\na@b.pl,ada\n"), ["ada"]);
        assert_eq!(names("  \n;\nemail;name\na@b.pl;ada\n"), ["ada"]);
    }

    #[test]
    fn lists_that_cannot_be_used_are_refused_with_their_lines() {
        let refused = |text: &str| NameList::parse(text).unwrap_err().to_string();
        assert!(refused("# nothing\n\n").starts_with("there are no names"));
        assert!(refused("name,email\n").starts_with("there are no names"));
        assert_eq!(refused("name,email\nada,a@b\n,c@d\n"), "line 3 has no name");
        assert_eq!(
            refused("ada\nbob\n\nada\neve\nbob\nada\n"),
            "write each name once: ada is on lines 1, 4 and 7; bob is on lines 2 and 6"
        );
        assert!(refused("name,email\nKowalski, Jan,x\n").contains("line 2 has 3 values"));
    }
}
