//! The text of a document. What is none is tested in `bad_input.rs`.

use interval_queue_contract::{Micros, Rates, Settings, Ticket};

use super::*;

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn record(ticket: u64) -> Record {
    let settings = Settings { rates: Rates::every(Micros::new(250_000)), max_running: None };
    Record { ticket: Ticket::new(ticket), ..Record::new(settings) }
}

fn taken(text: &str, queue: &str, wanted: Option<&str>) -> Result<Option<Record>, StateErrorKind> {
    let wanted = wanted.map(name);
    let mut document = Document::parse(Path::new("x"), Some(text.as_bytes()), wanted.as_ref()).unwrap();
    document.take(Path::new("x"), &name(queue)).map_err(|error| error.kind())
}

#[test]
fn a_record_reads_alike_with_and_without_the_frame() {
    let whole = record(7).to_json().unwrap();
    for (text, kind) in [
        (whole.as_str(), None),
        (&whole.replace("\"ticket\": 7", "\"ticket\": 5, \"ticket\": 7"), Some(StateErrorKind::Foreign)),
        (&whole.replace("\"version\": 2", "\"version\": 3"), Some(StateErrorKind::NewerVersion)),
        (&whole.replace("\"version\": 2", "\"version\": 99999999999"), Some(StateErrorKind::NewerVersion)),
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
fn a_person_can_read_the_text_however_often_it_is_written() {
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
