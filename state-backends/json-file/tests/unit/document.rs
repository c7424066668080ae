//! What is a state file and what is not.

use interval_queue_contract::{Micros, Settings, Ticket};

use super::*;

fn kind(text: impl AsRef<[u8]>) -> StateErrorKind {
    Document::parse(Path::new("/x/state.json"), Some(text.as_ref()), None).unwrap_err().kind()
}

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn record(ticket: u64) -> Record {
    let settings = Settings { interval: Micros::new(250_000), max_running: None };
    Record { ticket: Ticket::new(ticket), ..Record::new(settings) }
}

#[test]
fn what_is_not_a_state_file_is_told_apart() {
    use StateErrorKind::{Damaged, Foreign, NewerVersion};
    let whole = r#"{"interval_queue": 1, "queues": {"mail": {}}}"#;
    assert!(Document::parse(Path::new("x"), Some(whole.as_bytes()), None).is_ok());
    for length in 0..whole.len() {
        assert_eq!(kind(&whole[..length]), Damaged, "{:?}", &whole[..length]);
    }
    assert_eq!(kind(b"\xff\xfe"), Damaged);
    assert_eq!(kind("  \n"), Damaged);
    assert_eq!(kind(format!("{whole}}}")), Damaged);
    assert_eq!(kind("[1, 2"), Damaged);
    assert_eq!(kind(r#"{"interval_queue": 1, "queues": {"a": {}, "a": {}}}"#), Damaged);
    assert_eq!(kind("{}"), Foreign);
    assert_eq!(kind("[]"), Foreign);
    assert_eq!(kind("7"), Foreign);
    assert_eq!(kind(r#"{"version": 1, "queues": {}}"#), Foreign);
    assert_eq!(kind(r#"{"interval_queue": 0, "queues": {}}"#), Foreign);
    assert_eq!(kind(r#"{"interval_queue": 1, "queues": []}"#), Foreign);
    assert_eq!(kind(r#"{"interval_queue": 1, "queues": {}, "colour": "red"}"#), Foreign);
    assert_eq!(kind(r#"{"interval_queue": 1, "queues": {" mail": {}}}"#), Foreign);
    assert_eq!(kind(r#"{"interval_queue": 2, "queues": {}}"#), NewerVersion);
    assert_eq!(kind(r#"{"interval_queue": 2, "lanes": []}"#), NewerVersion);
}

fn taken(text: &str, queue: &str, wanted: Option<&str>) -> Result<Option<Record>, StateErrorKind> {
    let wanted = wanted.map(name);
    let mut document = Document::parse(Path::new("x"), Some(text.as_bytes()), wanted.as_ref()).unwrap();
    document.take(Path::new("x"), &name(queue)).map_err(|error| error.kind())
}

#[test]
fn the_records_of_other_queues_are_carried_over_as_they_are() {
    let odd = r#"{"version": 99,   "of": [ "a newer", "program" ]}"#;
    let text = format!(r#"{{"interval_queue": 1, "queues": {{"b": {odd}, "a": {{ }} }}}}"#);
    let new = name("c");
    let mut document = Document::parse(Path::new("x"), Some(text.as_bytes()), Some(&new)).unwrap();
    assert_eq!(document.take(Path::new("x"), &new).unwrap(), None);
    document.put(new, record(1));
    let written = written(&document);
    assert!(written.contains(odd), "{written}");
    assert!(written.contains("\"a\": { }"), "{written}");
    assert_eq!(document.names(), [name("a"), name("b"), name("c")]);
}

#[test]
fn a_record_is_the_same_whether_or_not_it_is_read_with_the_frame() {
    let whole = record(7).to_json().unwrap();
    for (text, kind) in [
        (whole.as_str(), None),
        // A name that comes twice is read as the parser of the record reads it.
        (&whole.replace("\"ticket\": 7", "\"ticket\": 5, \"ticket\": 7"), None),
        (&whole.replace("\"version\": 1", "\"version\": 2"), Some(StateErrorKind::NewerVersion)),
        (&whole.replace("\"version\": 1", "\"version\": 99999999999"), Some(StateErrorKind::NewerVersion)),
        (&whole.replace("\"current\": 0", "\"current\": 8"), Some(StateErrorKind::Foreign)),
        ("{}", Some(StateErrorKind::Foreign)),
        ("7", Some(StateErrorKind::Foreign)),
    ] {
        let text = format!(r#"{{"queues": {{"a": {text}}}, "interval_queue": 1}}"#);
        let expected = kind.map_or(Ok(Some(record(7))), Err);
        assert_eq!(taken(&text, "a", Some("a")), expected, "{text}");
        assert_eq!(taken(&text, "a", None), expected, "{text}");
    }
}

fn written(document: &Document<'_>) -> String {
    let mut bytes = b"what was there before".to_vec();
    document.write_to(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_text_stays_pretty_however_often_it_is_written() {
    let mut text = written(&Document::parse(Path::new("x"), None, None).unwrap());
    for round in 0..3_000 {
        let queue = name(["mail", "crawl", "odd"][round % 3]);
        let mut document = Document::parse(Path::new("x"), Some(text.as_bytes()), Some(&queue)).unwrap();
        document.put(queue, record(9));
        text = written(&document);
    }
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let queues = |name: &str| value["queues"][name]["ticket"].as_u64();
    assert_eq!([queues("mail"), queues("crawl"), queues("odd")], [Some(9); 3]);
    let expected = record(9).to_json().unwrap().replace('\n', "\n    ");
    let expected = format!(
        "{{\n  \"interval_queue\": 1,\n  \"queues\": {{\n    \"crawl\": {expected},\n    \"mail\": {expected},\n    \
         \"odd\": {expected}\n  }}\n}}\n"
    );
    assert_eq!(text, expected);
}
