//! Commands take turns on their connection, so that a server has few to answer at once.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use futures::future::join_all;
use interval_queue_contract::StateErrorKind::{TimedOut, Unreachable};

use crate::common::*;

/// A server that refuses each script, once no more commands come.
struct Refuser {
    url: String,
    /// How many scripts had no answer yet, at most.
    most: Arc<AtomicUsize>,
}

impl Refuser {
    /// On its first connections, so many, it hears scripts and says nothing.
    fn start(silent: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let most = Arc::new(AtomicUsize::new(0));
        let noted = most.clone();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let most = noted.clone();
                // It ends with the connection.
                thread::spawn(move || serve(stream.unwrap(), number < silent, &most));
            }
        });
        Self { url, most }
    }
}

fn serve(mut stream: TcpStream, silent: bool, most: &AtomicUsize) -> io::Result<()> {
    let mut commands = BufReader::new(stream.try_clone()?);
    let mut unanswered = 0;
    loop {
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        match commands.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(_) => {
                stream.set_read_timeout(None)?;
                match &*command(&mut commands)?.to_ascii_uppercase() {
                    b"EVALSHA" | b"EVAL" => {
                        unanswered += 1;
                        most.fetch_max(unanswered, SeqCst);
                    }
                    b"INFO" => stream.write_all(b"$10\r\nrun_id:abc\r\n")?,
                    _ => stream.write_all(b"+OK\r\n")?,
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if !silent {
                    let answers = std::mem::take(&mut unanswered);
                    stream.write_all("-ERR refused\r\n".repeat(answers).as_bytes())?;
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// The first word of the next command.
fn command(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut words = Vec::new();
    for _ in 0..number(from)? {
        let mut word = vec![0; number(from)? + 2];
        from.read_exact(&mut word)?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Ok(words.into_iter().next().unwrap_or_default())
}

fn number(from: &mut impl BufRead) -> io::Result<usize> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    line.trim_end()[1..].parse().map_err(io::Error::other)
}

#[tokio::test]
async fn a_server_has_few_commands_to_answer_at_once() {
    let server = Refuser::start(0);
    let state = connect_with_timeout(&server.url, Duration::from_secs(60)).await;
    for error in join_all((0..2_000).map(|_| open(&state))).await.into_iter().map(Result::unwrap_err) {
        assert!(!matches!(error.kind(), Unreachable | TimedOut), "{error}");
    }
    let most = server.most.load(SeqCst);
    assert!((2..=256).contains(&most), "{most} at once");
}

#[tokio::test]
async fn waiting_commands_go_on_after_unanswered_ones() {
    let server = Refuser::start(1);
    let state = connect_with_timeout(&server.url, Duration::from_secs(2)).await;
    let kinds: Vec<_> = join_all((0..1_000).map(|_| open(&state))).await.into_iter().map(kind).collect();
    let unanswered = kinds.iter().filter(|kind| **kind == TimedOut).count();
    assert!((1..=256).contains(&unanswered), "{unanswered} were sent in vain");
    assert!(!kinds.contains(&Unreachable), "the others were not sent, and then were");
}
