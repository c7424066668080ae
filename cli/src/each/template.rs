//! CMD with placeholders for the item.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    process::Command,
};

use crate::{
    exit::{Failure, USAGE},
    program::Program,
};

/// Some arguments contain the placeholder.
#[derive(Debug)]
pub(crate) struct Template {
    program: Program,
    placeholder: String,
}

impl Template {
    /// Finds the program as `run` does.
    pub(crate) fn find(words: &[OsString], placeholder: &str) -> Result<Self, Failure> {
        if let Some(name) = words.first()
            && contains(name, placeholder)
        {
            let name = name.display();
            let why = format!("{name} has {placeholder} in it: name the program, or write `env {name}`");
            return Err(Failure::new(USAGE, why));
        }
        let mut program = Program::find(words)?;
        if !program.args().iter().any(|arg| contains(arg, placeholder)) {
            program = program.with_arg(placeholder.into());
        }
        Ok(Self { program, placeholder: placeholder.to_owned() })
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn command(&self, item: &OsStr) -> Command {
        self.program.command(self.program.args().iter().map(|arg| filled(arg, &self.placeholder, item)))
    }
}

fn contains(word: &OsStr, placeholder: &str) -> bool {
    word.as_bytes().windows(placeholder.len()).any(|window| window == placeholder.as_bytes())
}

/// A placeholder within the item is kept.
fn filled(word: &OsStr, placeholder: &str, item: &OsStr) -> OsString {
    let (mut rest, mut filled) = (word.as_bytes(), Vec::new());
    while let Some(first) = rest.first() {
        match rest.strip_prefix(placeholder.as_bytes()) {
            Some(behind) => {
                filled.extend_from_slice(item.as_bytes());
                rest = behind;
            }
            None => {
                filled.push(*first);
                rest = &rest[1..];
            }
        }
    }
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str], placeholder: &str, item: &[u8]) -> Vec<OsString> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let template = Template::find(&words, placeholder).unwrap();
        template.command(OsStr::from_bytes(item)).get_args().map(OsString::from).collect()
    }

    #[test]
    fn every_place_is_filled_and_nothing_else() {
        assert_eq!(args(&["true", "{}{}", "a{}b", "{", "}"], "{}", b"{}x"), ["{}x{}x", "a{}xb", "{", "}"]);
        assert_eq!(args(&["true", "{}"], "{}", b"a b'\n\xff"), [OsString::from_vec(b"a b'\n\xff".to_vec())]);
        assert_eq!(args(&["true", "{}", "%"], "%", b"x"), ["{}", "x"]);
    }

    #[test]
    fn without_a_place_the_item_comes_last() {
        assert_eq!(args(&["true"], "{}", b"-x"), ["-x"]);
        assert_eq!(args(&["true", "-n"], "{}", b""), ["-n", ""]);
    }

    #[test]
    fn the_program_is_the_same_for_all() {
        let failure = Template::find(&["./{}".into()], "{}").unwrap_err();
        assert_eq!(failure.code, USAGE);
        assert!(failure.message.contains("env ./{}"), "{}", failure.message);
    }
}
