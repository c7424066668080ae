//! An edit by hand.

use super::*;

#[test]
fn an_edit_that_races_a_command_is_never_mixed_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    fs::write(&path, "what was there\n").unwrap();
    let mut file = TextFile::new(path.clone(), true, Flush::Nothing);
    let mut buffer = Vec::new();
    let before = file.read(&mut buffer).unwrap().unwrap().len();
    // As `echo` does: it empties the file when it opens it.
    let mut edit = File::create(&path).unwrap();
    file.replace(before, &mut b"a command\n".to_vec()).unwrap();
    edit.write_all(b"edit\n").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("a command") && text.trim_end() == "a command", "{text}");
}
