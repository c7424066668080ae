//! A mail sender: several processes that share what a relay allows, with urgent mail first.
//!
//! The relay takes 120 recipients in any two seconds and turns away whoever sends more. Two processes send
//! newsletters to lists of up to five recipients, and now and then a password reset, which must not wait
//! behind them. Their one pace is an interval of 20 ms for each recipient: 100 in two seconds, because what
//! leaves evenly arrives less evenly.
//!
//! - A message weighs as much as it has recipients.
//! - A password reset has a higher priority, and is worth nothing if it comes after ten seconds.
//! - What the relay turns away for now (4xx) is tried again, each time in a slot of its own.
//!
//!     cargo run --features mail --example mail_sender

use std::{
    collections::VecDeque,
    env,
    error::Error,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use interval_queue::{IntervalQueue, JobHandle, JobOptions, Retry};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor, message::Mailbox,
    transport::smtp::Error as SmtpError,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    process::Command,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Relay = AsyncSmtpTransport<Tokio1Executor>;

const WINDOW: Duration = Duration::from_secs(2);
const MOST: usize = 120;
const INTERVAL: Duration = Duration::from_millis(20);
const NEWSLETTERS: usize = 30;

#[tokio::main]
async fn main() -> Result<()> {
    match (env::var("MAIL_STATE"), env::var("MAIL_RELAY")) {
        (Ok(state), Ok(relay)) => send_all(&state, relay.parse()?).await,
        _ => parent().await,
    }
}

/// What each process does.
async fn send_all(state: &str, port: u16) -> Result<()> {
    let queue = IntervalQueue::builder("relay").interval(INTERVAL).connect(state).await?;
    let relay = Relay::builder_dangerous("127.0.0.1").port(port).build();

    let letters = (0..NEWSLETTERS).map(|number| {
        let recipients = 1 + number % 5;
        let options = JobOptions::new().weight(recipients as u32).timeout(Duration::from_secs(30));
        add(&queue, &relay, options, message("News", recipients))
    });
    let letters = try_join_all(letters).await?;
    let reset = JobOptions::new().priority(10).start_within(Duration::from_secs(10));
    let reset = add(&queue, &relay, reset, message("Your new password", 1)).await?;
    let waiting = queue.waiting();
    reset.await???;
    println!("the password reset left before {} of the {waiting} messages that waited", queue.waiting());
    for letter in letters {
        letter.await???;
    }
    queue.close().await;
    Ok(())
}

/// What the relay said in the end: it took the message, refuses it for good, or still wants to be asked
/// later.
type Sent = JobHandle<Outcome<Outcome<()>>>;
type Outcome<T> = std::result::Result<T, SmtpError>;

/// Adds a message, to be tried again for as long as the relay may change its mind.
async fn add(
    queue: &IntervalQueue,
    relay: &Relay,
    options: JobOptions,
    message: Result<Message>,
) -> Result<Sent> {
    let (relay, message) = (relay.clone(), message?);
    let send = move || {
        let (relay, message) = (relay.clone(), message.clone());
        async move {
            match relay.send(message).await {
                Ok(_) => Ok(Ok(())),
                Err(error) if error.is_permanent() => Ok(Err(error)),
                Err(error) => Err(error),
            }
        }
    };
    Ok(queue.retrying(Retry::times(5), send).options(options).add().await?)
}

fn message(subject: &str, recipients: usize) -> Result<Message> {
    let mut message = Message::builder().from("News <news@example.org>".parse()?).subject(subject);
    for number in 0..recipients {
        message = message.to(format!("reader{number}@example.net").parse::<Mailbox>()?);
    }
    Ok(message.body("Dear reader".to_owned())?)
}

// The rest starts the processes and plays the relay.

async fn parent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("mail.json").display());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let seen = Arc::new(Mutex::new(Seen::default()));
    tokio::spawn(relay(listener, seen.clone()));

    println!("A relay that takes {MOST} recipients in {WINDOW:?}, and two processes that send\n");
    let mut children = Vec::new();
    for _ in 0..2 {
        let mut command = Command::new(env::current_exe()?);
        command.env("MAIL_STATE", &state).env("MAIL_RELAY", port.to_string());
        children.push(command.stdout(Stdio::inherit()).kill_on_drop(true).spawn()?);
    }
    for mut child in children {
        if !child.wait().await?.success() {
            return Err("a sender failed".into());
        }
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "the relay took {} messages to {} recipients, at most {} in {WINDOW:?}, and turned {} away",
        seen.messages, seen.recipients, seen.peak, seen.refused
    );
    if seen.refused > 0 || seen.messages != 2 * (NEWSLETTERS + 1) {
        return Err("the relay saw more than it allows, or not everything".into());
    }
    Ok(())
}

#[derive(Default)]
struct Seen {
    messages: usize,
    recipients: usize,
    refused: usize,
    peak: usize,
    latest: VecDeque<Instant>,
}

impl Seen {
    /// Whether the relay takes a message to so many.
    #[allow(clippy::disallowed_methods, reason = "the relay has a clock of its own")]
    fn take(&mut self, recipients: usize) -> bool {
        let now = Instant::now();
        self.latest.retain(|at| now - *at < WINDOW);
        if self.latest.len() + recipients > MOST {
            self.refused += 1;
            return false;
        }
        self.latest.extend(std::iter::repeat_n(now, recipients));
        self.peak = self.peak.max(self.latest.len());
        self.messages += 1;
        self.recipients += recipients;
        true
    }
}

/// Enough of SMTP (RFC 5321) for one client.
async fn relay(listener: TcpListener, seen: Arc<Mutex<Seen>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let seen = seen.clone();
        tokio::spawn(async move { session(stream, &seen).await });
    }
}

async fn session(stream: TcpStream, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let (mut recipients, mut in_text) = (0, false);
    write.write_all(b"220 relay\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "." if in_text => {
                in_text = false;
                let taken = seen.lock().unwrap_or_else(PoisonError::into_inner).take(recipients);
                recipients = 0;
                if taken { "250 taken" } else { "451 4.7.1 too much, later" }
            }
            _ if in_text => continue,
            "RCPT" => {
                recipients += 1;
                "250 yes"
            }
            "DATA" => {
                in_text = true;
                "354 go on"
            }
            "QUIT" => return write.write_all(b"221 bye\r\n").await,
            _ => "250 relay",
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}
