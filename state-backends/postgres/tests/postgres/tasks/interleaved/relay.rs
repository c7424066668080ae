//! A relay before the server that lets one statement pass at a time. The client is the shipped one, and knows
//! nothing of it: to the client it is a slow network.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

/// What is on its way over the connections of one client.
#[derive(Debug, Default)]
pub(super) struct Relay {
    lines: Mutex<Lines>,
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct Lines {
    /// Whether statements wait until they are let through.
    holds: bool,
    lines: Vec<Line>,
}

/// A connection.
#[derive(Debug)]
struct Line {
    /// The process of the server that serves it.
    process: i32,
    /// Statements that the client has sent and that wait here: all messages up to one that the server answers with
    /// `ReadyForQuery`.
    held: VecDeque<Vec<u8>>,
    /// Statements that the server has not answered.
    unanswered: usize,
    /// None: the client has closed it.
    to_server: Option<UnboundedSender<Vec<u8>>>,
}

/// Where the client stands.
#[derive(Debug)]
pub(super) struct Standing {
    /// Whether a statement could be let through.
    pub(super) has_next: bool,
    /// The processes of the server that carry out statements.
    pub(super) at_work: Vec<i32>,
}

impl Line {
    fn can_go_on(&self) -> bool {
        self.unanswered == 0 && !self.held.is_empty()
    }

    fn pass(&mut self) {
        if let Some(statement) = self.held.pop_front() {
            self.unanswered += 1;
            self.send(statement);
        }
    }

    fn send(&self, bytes: Vec<u8>) {
        if let Some(to_server) = &self.to_server {
            // If the server has ended it nobody waits for an answer.
            let _ = to_server.send(bytes);
        }
    }
}

impl Relay {
    /// A relay to the server at a port, and the port where it listens.
    pub(super) async fn before(server: u16) -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = Arc::new(Self::default());
        let relaying = relay.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                relaying.connect(client, server);
            }
        });
        (relay, port)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap()
    }

    pub(super) fn hold(&self) {
        self.lines().holds = true;
    }

    /// Lets everything through from now on.
    pub(super) fn open(&self) {
        let mut lines = self.lines();
        lines.holds = false;
        for line in &mut lines.lines {
            while !line.held.is_empty() {
                line.pass();
            }
        }
    }

    /// Lets one statement through, if there is one whose connection is free.
    pub(super) fn pass_one(&self) {
        if let Some(line) = self.lines().lines.iter_mut().find(|line| line.can_go_on()) {
            line.pass();
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let lines = self.lines();
        let at_work = lines.lines.iter().filter(|line| line.unanswered > 0).map(|line| line.process);
        Standing { has_next: lines.lines.iter().any(Line::can_go_on), at_work: at_work.collect() }
    }

    fn change(&self, line: usize, how: impl FnOnce(&mut Line, bool)) {
        let mut lines = self.lines();
        let holds = lines.holds;
        how(&mut lines.lines[line], holds);
        drop(lines);
        self.changed.notify_waiters();
    }

    fn connect(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (to_server, statements) = unbounded_channel();
        let mut lines = self.lines();
        let number = lines.lines.len();
        // The start of a connection is answered as a statement is.
        lines.lines.push(Line {
            process: 0,
            held: VecDeque::new(),
            unanswered: 1,
            to_server: Some(to_server),
        });
        drop(lines);
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::spawn(send(statements, to_server));
        let (asking, answering) = (self.clone(), self.clone());
        tokio::spawn(async move {
            // The client is gone: so is its session at the server.
            let _ = asking.ask(number, from_client).await;
            asking.change(number, |line, _| {
                line.held.clear();
                line.to_server = None;
            });
        });
        tokio::spawn(async move {
            let _ = answering.answer(number, from_server, to_client).await;
            answering.change(number, |line, _| line.unanswered = 0);
        });
    }

    /// What the client says.
    async fn ask(&self, line: usize, mut client: OwnedReadHalf) -> std::io::Result<()> {
        let length = client.read_u32().await?;
        let mut first = length.to_be_bytes().to_vec();
        read_body(&mut client, length, &mut first).await?;
        self.change(line, |line, _| line.send(first));
        let mut statement = Vec::new();
        loop {
            let kind = client.read_u8().await?;
            let length = client.read_u32().await?;
            statement.push(kind);
            statement.extend(length.to_be_bytes());
            read_body(&mut client, length, &mut statement).await?;
            // A query, or the end of what is sent at once.
            if kind == b'Q' || kind == b'S' {
                let said = std::mem::take(&mut statement);
                // A nudge is no part of any transaction.
                let is_nudge = said.windows(9).any(|text| text == b"pg_notify");
                self.change(line, |line, holds| {
                    line.held.push_back(said);
                    if !holds || is_nudge {
                        line.pass();
                    }
                });
            }
        }
    }

    /// What the server says.
    async fn answer(
        &self,
        line: usize,
        mut server: OwnedReadHalf,
        mut client: OwnedWriteHalf,
    ) -> std::io::Result<()> {
        loop {
            let kind = server.read_u8().await?;
            let length = server.read_u32().await?;
            let mut message = vec![kind];
            message.extend(length.to_be_bytes());
            read_body(&mut server, length, &mut message).await?;
            let process = message.get(5..9).map(|bytes| i32::from_be_bytes(bytes.try_into().unwrap()));
            client.write_all(&message).await?;
            match kind {
                // Its key, with the process first.
                b'K' => self.change(line, |line, _| line.process = process.unwrap()),
                b'Z' => self.change(line, |line, _| line.unanswered -= 1),
                _ => {}
            }
        }
    }
}

async fn send(mut statements: UnboundedReceiver<Vec<u8>>, mut server: OwnedWriteHalf) -> std::io::Result<()> {
    while let Some(statement) = statements.recv().await {
        server.write_all(&statement).await?;
    }
    Ok(())
}

/// Reads the rest of a message, whose length counts itself.
async fn read_body(from: &mut OwnedReadHalf, length: u32, into: &mut Vec<u8>) -> std::io::Result<()> {
    let begun = into.len();
    into.resize(begun + length as usize - 4, 0);
    from.read_exact(&mut into[begun..]).await.map(drop)
}
