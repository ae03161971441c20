//! Lists of names, for the creation of many tokens at once.
//!
//! A list has one name a line, or is a table: comma-separated values whose header has a column
//! `name`. Spreadsheets of some countries separate values by semicolons, and many begin a file with
//! a byte order mark, so both are accepted. Blank lines and lines that begin with `#` do not count.

use arbiter_proto::v1::CreateTokensRequest;
use csv::{ReaderBuilder, StringRecord, Trim, WriterBuilder};
use thiserror::Error as ThisError;

use super::Role;

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
}

impl NameList {
    /// Reads a list. The coordinator checks its names.
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
        let mut lines = LineCounter { text, counted: 0, line: 1 };
        let rows = records.map(|record| {
            let record = record.map_err(failed)?;
            row(&record, lines.line(&record), header.len())
        });
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(Some(Self { header, column, rows }))
    }

    /// The names, in the order of the list.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows.iter().map(|row| row.values[self.column].as_str())
    }

    /// The request for a token of this role for each name. `expires_at_us` is in microseconds since
    /// 1970; 0: never.
    pub fn request(&self, role: Role, expires_at_us: i64) -> CreateTokensRequest {
        CreateTokensRequest {
            role: role.to_string(),
            names: self.names().map(str::to_owned).collect(),
            expires_at_us,
            lines: self.rows.iter().map(|row| row.line).collect(),
        }
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

/// Finds the lines of the records of a text, one record after another.
struct LineCounter<'a> {
    text: &'a str,
    /// The number of bytes whose lines are counted.
    counted: usize,
    /// The line after them, from 1.
    line: u64,
}

impl LineCounter<'_> {
    /// The line on which a record begins. The position that the parser gives it is the end of the
    /// record before: blank lines, comments and half of a line break can follow there.
    fn line(&mut self, record: &StringRecord) -> u64 {
        let position = record.position().map_or(0, csv::Position::byte);
        let end_before = usize::try_from(position).unwrap_or(usize::MAX);
        let mut rest = self.text.get(end_before..).unwrap_or_default();
        rest = rest.trim_start_matches(['\r', '\n']);
        while rest.starts_with('#') {
            rest = rest.trim_start_matches(|c: char| c != '\n').trim_start_matches(['\r', '\n']);
        }
        let begin = self.text.len() - rest.len();
        let passed = self.text.get(self.counted..begin).unwrap_or_default();
        self.line += passed.matches('\n').map(|_| 1).sum::<u64>();
        self.counted = begin;
        self.line
    }
}

/// The row on this line of a table with this number of columns.
fn row(record: &StringRecord, line: u64, columns: usize) -> Result<Row, NameListError> {
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
        NameList::read(text).unwrap().names().map(str::to_owned).collect()
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
        let list = NameList::read(table).unwrap();
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
    fn a_request_has_the_line_of_each_name() {
        let list = NameList::read("# a class\nname,email\nada,a@b\n\n,c@d\nada,e@f\n").unwrap();
        let request = list.request(Role::Player, 7);
        assert_eq!((&request.role[..], request.expires_at_us), ("player", 7));
        assert_eq!(request.names, ["ada", "", "ada"]);
        assert_eq!(request.lines, [3, 5, 6]);
    }

    #[test]
    fn lines_are_counted_as_an_editor_shows_them() {
        let lines = |text: &str| NameList::read(text).unwrap().request(Role::Player, 0).lines;
        assert_eq!(lines("name,email\r\nada,a@b\r\n\r\nbob,c@d\r\n"), [2, 4]);
        assert_eq!(lines("\nname,email\n# one\n\n#two\nada,a@b\nbob,c@d"), [6, 7]);
        assert_eq!(lines("name,email\n\"Ada\nLovelace\",a@b\n,\nbob,c@d\n"), [2, 5]);
        assert_eq!(lines("# names\r\nada\r\n\r\nbob"), [2, 4]);
    }

    #[test]
    fn lists_that_cannot_be_used_are_refused_with_their_lines() {
        let refused = |text: &str| NameList::read(text).unwrap_err().to_string();
        assert!(refused("# nothing\n\n").starts_with("there are no names"));
        assert!(refused("name,email\n").starts_with("there are no names"));
        assert!(refused("name,email\nKowalski, Jan,x\n").contains("line 2 has 3 values"));
    }
}
