//! The parser of the state file.

use interval_queue::contract::{Micros, QueueName, Rates, Record, Settings};
use interval_queue_json_file::fuzzing::{names, put, record};

use crate::promise::{Verdict, is_sound, refuses};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let queues = match names(bytes) {
        Ok(queues) => queues,
        Err(error) => return refuses(&error, bytes),
    };
    let before: Vec<_> = queues.iter().map(|queue| read(bytes, queue)).collect();

    // A command on one queue leaves all others as they are, readable or not.
    let mine = QueueName::new("written").unwrap();
    let mut written =
        Record::new(Settings { rates: Rates::every(Micros::from_millis(250)), max_running: Some(7) });
    written.incarnation = "some \"server\" \u{1f600}".into();
    let after = put(bytes, &mine, &written).unwrap();
    let mut expected = queues.clone();
    if !expected.contains(&mine) {
        expected.push(mine.clone());
        expected.sort();
    }
    assert_eq!(names(&after).unwrap(), expected);
    assert_eq!(record(&after, &mine).unwrap(), Some(written.clone()));
    for (queue, before) in queues.iter().zip(before).filter(|(queue, _)| **queue != mine) {
        assert_eq!(read(&after, queue), before, "{queue}");
    }
    assert_eq!(put(&after, &mine, &written).unwrap(), after, "the text stays as it is");
    Verdict::Read
}

fn read(bytes: &[u8], queue: &QueueName) -> Result<Option<Record>, String> {
    match record(bytes, queue) {
        Ok(record) => {
            record.iter().for_each(is_sound);
            Ok(record)
        }
        Err(error) => {
            let _ = refuses(&error, bytes);
            Err(error.to_string())
        }
    }
}
